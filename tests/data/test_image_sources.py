"""Images from folders, .npz, parquet and lists; and everything that is no image."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.data.image_corpus import natural_side, open_images
from isotrope.data.image_sources import Skipped, is_image_source, open_source
from isotrope.data.pictures import decoded, from_array, seen, squared
from isotrope.errors import InputError

Image = pytest.importorskip("PIL.Image", reason="images are decoded by Pillow")


def encoded(picture: Any, form: str = "PNG", **options: Any) -> bytes:
    stream = io.BytesIO()
    picture.save(stream, form, **options)
    return stream.getvalue()


def test_sub_folders_are_labels_and_pixels_come_back_as_they_were(image_folder: Path, image_file: Path) -> None:
    folder, file = (open_images(one, "labelled-images", 16) for one in (image_folder, image_file))
    assert folder.classes == file.classes == ["columns", "dots", "rows"]
    by_name = {folder.text(row): row for row in range(len(folder))}
    for row in range(30):
        name = next(name for name in by_name if name.endswith(f"{row:03}.png"))
        assert (folder.pixels([by_name[name]]) == file.pixels([row])).all()
        assert folder.values[by_name[name]] == file.values[row] == Path(name).parts[0]


def test_packed_jpeg_arrays_and_parquet_give_the_same_images(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    rng = np.random.default_rng(0)
    files = [encoded(Image.fromarray(rng.integers(0, 255, (16, 16, 3), dtype=np.uint8)), "JPEG") for _ in range(4)]
    ends = np.cumsum([0, *map(len, files)])
    jpeg = np.frombuffer(b"".join(files), dtype=np.uint8)
    np.savez(tmp_path / "a.npz", jpeg=jpeg, offsets=ends, labels=[0, 1, 0, 1], classes=["cat", "dog"])
    table = pyarrow.table({"image": [{"bytes": one, "path": ""} for one in files], "label": ["cat", "dog"] * 2})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    packed, columns = (open_images(tmp_path / name, "labelled-images", 16) for name in ("a.npz", "a.parquet"))
    assert (packed.pixels(range(4)) == columns.pixels(range(4))).all()
    assert packed.values == columns.values == ["cat", "dog", "cat", "dog"]


def test_grey_alpha_deep_and_animated_images_become_rgb() -> None:
    grey = decoded(encoded(Image.fromarray(np.full((4, 4), 90, dtype=np.uint8))))
    assert (grey == 90).all()
    assert grey.shape == (4, 4, 3)
    clear = Image.fromarray(np.array([[[255, 0, 0, 0], [255, 0, 0, 255]]], dtype=np.uint8))
    assert decoded(encoded(clear)).tolist() == [[[255, 255, 255], [255, 0, 0]]]  # what cannot be seen is white
    deep = Image.fromarray(np.array([[0, 257 * 100], [257 * 200, 65535]], dtype=np.uint16))
    assert decoded(encoded(deep))[..., 0].tolist() == [[0, 100], [200, 255]]
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    film = encoded(frames[0], "GIF", save_all=True, append_images=frames[1:])
    assert decoded(film)[0, 0].tolist() == [255, 0, 0]


def test_arrays_of_every_form_are_the_same_image() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (5, 6, 3), dtype=np.uint8)
    forms = [pixels, pixels.astype(np.int64), pixels / 255.0, pixels.transpose(2, 0, 1), pixels.astype(np.uint16) * 257]
    assert all((from_array(form) == pixels).all() for form in forms)
    with pytest.raises(InputError, match=r"must lie in \[0, 1\]"):
        from_array(pixels * 1.0)
    with pytest.raises(InputError, match="the shape"):
        from_array(np.zeros(7))


def test_a_square_of_the_right_side_is_untouched_and_others_keep_their_middle() -> None:
    wide = np.zeros((10, 30, 3), dtype=np.uint8)
    wide[:, 10:20] = 200
    assert (squared(wide, 10) == 200).all()
    square = np.ascontiguousarray(wide[:, 10:20])
    assert seen(square, 10) is square
    assert seen(wide, 8).shape == (8, 8, 3)
    assert (seen(wide, 8)[:, 2:-2] == 200).all()


def test_files_that_are_no_images_are_left_out_counted_and_named(image_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    shutil.copytree(image_folder, folder)
    whole = next((folder / "dots").glob("*.png"))
    (folder / "dots" / "cut.png").write_bytes(whole.read_bytes()[:60])
    (folder / "rows" / "notes.txt").write_text("no image", encoding="utf-8")
    corpus = open_images(folder, "labelled-images", 16)
    assert (len(corpus), corpus.counts.empty) == (30, 2)
    assert "dots/cut.png" in corpus.skipped
    assert "rows/notes.txt" in corpus.skipped


def test_images_of_mixed_sizes_are_kept_a_little_larger_than_the_network_sees(tmp_path: Path) -> None:
    for number, size in enumerate(((40, 30), (20, 64), (33, 33))):
        Image.new("RGB", size, "green").save(tmp_path / f"{number}.png")
    corpus = open_images(tmp_path, "images", 28)
    assert (corpus.side, corpus.record_type.name) == (32, "images")
    assert natural_side(tmp_path) is None


def test_equal_images_have_equal_keys(tmp_path: Path) -> None:
    images = np.zeros((3, 8, 8, 3), dtype=np.uint8)
    images[1] += 9
    np.savez(tmp_path / "a.npz", images=images)
    corpus = open_images(tmp_path / "a.npz", "images", 8)
    assert corpus.counts.duplicates == 1
    assert corpus.keys[0] == corpus.keys[2] != corpus.keys[1]


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"images": np.zeros((3, 8, 8, 3), np.uint8), "labels": [0, 1]}, "3 images and 2 labels"),
        ({"images": np.zeros((2, 8, 8, 3), np.uint8), "labels": [0, 5], "classes": ["a", "b"]}, "there are 2 classes"),
        ({"words": np.zeros(3)}, "arrays found: words"),
        ({"images": np.zeros((0, 8, 8, 3), np.uint8)}, "holds no images"),
    ],
)
def test_arrays_that_do_not_fit_are_one_sentence(tmp_path: Path, arrays: dict[str, Any], said: str) -> None:
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(InputError, match=said):
        open_source(tmp_path / "a.npz")


def test_folders_that_do_not_fit_are_one_sentence(tmp_path: Path, image_folder: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no images"):
        open_source(tmp_path / "empty")
    with pytest.raises(InputError, match="no such file"):
        open_source(tmp_path / "none")
    shutil.copytree(image_folder, tmp_path / "parts" / "train")
    with pytest.raises(InputError, match="give one, as"):
        open_source(tmp_path / "parts")
    shutil.copytree(image_folder, tmp_path / "loose")
    shutil.copy(next(image_folder.rglob("*.png")), tmp_path / "loose" / "x.png")
    with pytest.raises(InputError, match=r"move x\.png"):
        open_source(tmp_path / "loose")
    (tmp_path / "a.npz").write_bytes(b"PK\x03\x04 broken")
    with pytest.raises(InputError, match=r"cannot be read as \.npz"):
        open_source(tmp_path / "a.npz")


def test_metadata_of_a_hugging_face_folder_wins(image_folder: Path, tmp_path: Path) -> None:
    files = sorted(image_folder.rglob("*.png"))[:4]
    for file in files:
        shutil.copy(file, tmp_path)
    rows = [f"{file.name},{'odd' if number % 2 else 'even'}" for number, file in enumerate(files)]
    (tmp_path / "metadata.csv").write_text("\n".join(["file_name,label", *rows]) + "\n", encoding="utf-8")
    assert open_images(tmp_path, "labelled-images", 16).values == ["even", "odd", "even", "odd"]


def test_what_is_images_is_told_by_name(image_folder: Path, image_file: Path, sentences: Path) -> None:
    assert is_image_source(image_folder)
    assert is_image_source(str(image_file))
    assert is_image_source([np.zeros((4, 4, 3), np.uint8)])
    assert not is_image_source(sentences)
    assert not is_image_source(["a sentence"])
    assert not is_image_source(sentences.parent / "none.txt")


def test_one_image_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"no")
    with pytest.raises(InputError, match="is an image"):
        open_images(tmp_path / "a.png", "images", 8)
    skipped = Skipped()
    assert list(open_source(tmp_path / "a.png").pictures(skipped)) == []
    assert skipped.count == 1


def test_a_mark_before_the_metadata_is_no_part_of_a_name(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(encoded(Image.new("RGB", (4, 4))))
    (tmp_path / "metadata.csv").write_text("file_name,label\na.png,cat\n", encoding="utf-8-sig")
    assert [entry[:2] for entry in open_source(tmp_path).entries] == [("a.png", "cat")]


def test_a_parquet_label_that_is_null_is_no_label_and_a_damaged_one_is_one_sentence(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    picture = encoded(Image.new("RGB", (4, 4)))
    pyarrow.parquet.write_table(
        pyarrow.table({"image": [picture] * 3, "label": ["cat", None, "dog"]}), tmp_path / "a.parquet"
    )
    assert [label for _, label, _ in open_source(tmp_path / "a.parquet").entries] == ["cat", None, "dog"]
    with pytest.raises(InputError, match="the images have no labels"):
        open_images(tmp_path / "a.parquet", "labelled-images", 4)
    whole = (tmp_path / "a.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[:4] + bytes(200) + whole[204:])
    with pytest.raises(InputError, match=r"b.parquet: the parquet file is damaged"):
        open_source(tmp_path / "b.parquet")
