"""Where images come from: a folder (its sub-folders are labels), an .npz, a parquet of encoded images, or a list.

    images/cat/1.png                    the label is "cat"; metadata.csv or .jsonl (file_name, label) wins where it is
                                        there, as in a Hugging Face image folder
    x.npz with images, labels           [n, height, width, 3] uint8; labels and classes may be missing
    x.npz with jpeg, offsets, labels    image i is jpeg[offsets[i]:offsets[i + 1]]
    x.parquet with image, label         encoded bytes, or {"bytes": …, "path": …}

A file that cannot be decoded is left out, counted and named.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.data.pictures import NotAnImageError, Pixels, decoded, from_array, is_picture
from isotrope.data.prose_blocks import PROSE
from isotrope.errors import InputError
from isotrope.files import digest, file_digest

Source = str | os.PathLike[str] | Sequence[Any]
SPLITS = {"train", "training", "test", "testing", "val", "valid", "validation", "dev"}
METADATA = ("metadata.csv", "metadata.jsonl")
NAMED = 5  # files that a message names


@dataclass
class Skipped:
    """Files that are no images: how many, and the first of them with the reason."""

    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, name: str, reason: object) -> None:
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(f"{name} ({reason})")

    def __str__(self) -> str:
        more = f" and {self.count - len(self.first):,} more" if self.count > len(self.first) else ""
        return f"{self.count:,} files are no images and are left out: {', '.join(self.first)}{more}"


@dataclass(frozen=True)
class ImageSource:
    """``entries``: a name, a label (None where there is none) and how to get the pixels; ``content``: a digest."""

    where: str
    content: str
    entries: Sequence[tuple[str, str | None, Callable[[], Pixels]]]

    @property
    def labelled(self) -> bool:
        return bool(self.entries) and all(label is not None for _, label, _ in self.entries)

    def pictures(self, skipped: Skipped) -> Iterator[tuple[str, str | None, Pixels]]:
        """Every image that can be decoded, in order; the others are counted."""
        for name, label, read in self.entries:
            try:
                yield name, label, read()
            except (NotAnImageError, OSError) as error:
                skipped.add(name, error)


def is_image_source(source: Any) -> bool:
    """Whether data are images, by their name alone; of a list its first entry decides."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.is_dir():
            return _holds_images(path)
        if path.suffix.lower() == ".parquet" and path.is_file():
            return _image_column(path) is not None
        return path.suffix.lower() == ".npz" or is_picture(path)
    if isinstance(source, np.ndarray):
        return source.ndim == 4
    if not isinstance(source, Sequence) or not len(source):
        return False
    first = source[0][0] if isinstance(source[0], tuple) else source[0]
    return _is_pixels(first) or (isinstance(first, str | os.PathLike) and is_picture(first) and Path(first).exists())


def _holds_images(folder: Path) -> bool:
    """Whether there is an image; documents with figures in a folder are text as long as there are fewer figures."""
    files = list(_walk(folder))
    if any(file.name in METADATA for file in files):
        return True
    pictures = sum(map(is_picture, files))
    documents = sum(file.suffix.lower() in PROSE for file in files)
    return 0 < pictures >= documents or not any(folder.iterdir())


def _is_pixels(item: Any) -> bool:
    return isinstance(item, np.ndarray) or type(item).__module__.startswith("PIL.") or hasattr(item, "__array__")


def open_source(source: Source) -> ImageSource:
    """What can be read of a source; an empty or a strange one is one sentence."""
    if not isinstance(source, str | os.PathLike):
        return _of_list(source)
    path = Path(source)
    if not path.exists():
        raise InputError(f"{path}: no such file or folder.")
    if path.is_dir():
        return _of_folder(path)
    if not path.is_file():
        raise InputError(f"{path}: a pipe or a device, and no file; write the images into a file first.")
    if path.suffix.lower() == ".npz":
        return _of_npz(path)
    if path.suffix.lower() == ".parquet":
        return _of_parquet(path)
    return ImageSource(str(path), file_digest(path), [(path.name, None, lambda: decoded(path))])


def content_digest(source: str | os.PathLike[str]) -> str:
    """A digest of a file, whatever it holds, or of a folder of images."""
    return open_source(source).content if Path(source).is_dir() else file_digest(source)


def check_images(source: str | os.PathLike[str]) -> None:
    """Refuse what is no source of images, before anything heavy is imported."""
    open_source(source)


def _walk(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            if not name.startswith("."):
                yield Path(place) / name


def _of_folder(folder: Path) -> ImageSource:
    table = next((folder / name for name in METADATA if (folder / name).is_file()), None)
    if table is not None:
        rows = _metadata(folder, table)
    else:
        splits = sorted(entry.name for entry in folder.iterdir() if entry.is_dir() and entry.name.lower() in SPLITS)
        if splits and all(entry.name in splits for entry in folder.iterdir() if entry.is_dir()):
            raise InputError(
                f"{folder}: the folder holds the parts {', '.join(splits)}; give one, as {folder}/{splits[0]}."
            )
        files = [file for file in _walk(folder) if file.name not in METADATA]
        rows = [(file, file.relative_to(folder).parts[0] if file.parent != folder else None) for file in files]
        if any(label is None for _, label in rows) and any(label is not None for _, label in rows):
            raise InputError(
                f"{folder}: some images lie in sub-folders, which are labels, and some do not; move "
                f"{next(file.name for file, label in rows if label is None)} into one."
            )
    if not rows:
        raise InputError(f"{folder}: this is a folder that holds no images; give one that does, or a file of text.")
    stated = [f"{file.relative_to(folder)} {label} {_stat(file)}" for file, label in rows]
    return ImageSource(
        str(folder),
        digest(*stated),
        [(str(file.relative_to(folder)), label, _reader(file)) for file, label in rows],
    )


def _stat(file: Path) -> str:
    try:
        found = file.stat()
    except OSError:
        return "missing"
    return f"{found.st_size} {found.st_mtime_ns}"


def _reader(file: Path) -> Callable[[], Pixels]:
    def read() -> Pixels:
        if file.exists() and not file.is_file():
            raise NotAnImageError("it is a folder, a pipe or a device")  # a pipe would be waited for
        return decoded(file)

    return read


def _metadata(folder: Path, table: Path) -> list[tuple[Path, str | None]]:
    """The rows of metadata.csv or metadata.jsonl: file_name, and label where there is one."""
    try:
        with open(table, encoding="utf-8-sig", newline="") as file:
            rows = (
                list(csv.DictReader(file))
                if table.suffix == ".csv"
                else [json.loads(line) for line in file if line.strip()]
            )
    except (ValueError, RecursionError, csv.Error, OSError) as error:
        raise InputError(f"{table}: cannot be read ({error}).") from error
    for number, row in enumerate(rows, 1):
        name = row.get("file_name") if isinstance(row, dict) else None
        if not name or not isinstance(name, str):
            raise InputError(f"{table}: row {number} has no file_name.")
        if "\0" in name or not (folder / name).resolve().is_relative_to(folder.resolve()):
            raise InputError(f"{table}: row {number} names a file outside the folder ({name!r}); move it inside.")
    return [(folder / row["file_name"], None if row.get("label") in (None, "") else str(row["label"])) for row in rows]


def _of_npz(path: Path) -> ImageSource:
    try:
        with np.load(path, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
    except (OSError, ValueError, KeyError, EOFError) as error:
        raise InputError(f"{path}: cannot be read as .npz ({error}).") from error
    except Exception as error:  # a damaged zip has a class of its own
        raise InputError(f"{path}: cannot be read as .npz ({error}).") from error
    images = next((arrays[name] for name in ("images", "data", "x", "arr_0") if name in arrays), None)
    if {"jpeg", "offsets"} <= arrays.keys():
        packed, ends = arrays["jpeg"], arrays["offsets"]
        if packed.ndim != 1 or ends.ndim != 1 or packed.dtype != np.uint8 or ends.dtype.kind not in "iu":
            raise InputError(f"{path}: jpeg is a row of bytes (uint8), and offsets a row of whole numbers.")
        count = len(ends) - 1
        read = lambda row: decoded(packed[ends[row] : ends[row + 1]].tobytes())  # noqa: E731
    elif images is not None and images.ndim in (3, 4):
        count = len(images)
        read = lambda row: from_array(images[row])  # noqa: E731
    else:
        raise InputError(
            f"{path}: arrays found: {', '.join(sorted(arrays))}; images [n, height, width, 3], or jpeg with offsets, "
            "were expected."
        )
    labels = _labels(arrays.get("labels"), arrays.get("classes"), count, str(path))
    entries = [(f"{path.name}[{row}]", label, _row_reader(read, row)) for row, label in enumerate(labels)]
    if not entries:
        raise InputError(f"{path}: the file holds no images.")
    return ImageSource(str(path), file_digest(path), entries)


def _row_reader(read: Callable[[int], Pixels], row: int) -> Callable[[], Pixels]:
    return lambda: read(row)


def _labels(labels: Any, classes: Any, count: int, where: str) -> list[str | None]:
    """The label of each image, by name where ``classes`` has names."""
    if labels is None:
        return [None] * count
    values = np.asarray(labels).reshape(-1)
    if len(values) != count:
        raise InputError(f"{where}: {count:,} images and {len(values):,} labels; each image needs one.")
    if classes is None or not np.issubdtype(values.dtype, np.integer):
        return [str(value) for value in values.tolist()]
    names = np.asarray(classes).reshape(-1).tolist()
    if count and not 0 <= int(values.min()) <= int(values.max()) < len(names):
        raise InputError(
            f"{where}: labels run from {values.min()} to {values.max()}, and there are {len(names)} classes."
        )
    return [str(names[value]) for value in values.tolist()]


def _image_column(path: Path) -> str | None:
    """A column of bytes called image or img, or one of {"bytes", "path"} under any name."""
    import pyarrow.parquet
    from pyarrow import ArrowException, types

    try:
        schema = pyarrow.parquet.read_schema(path)
    except (OSError, ArrowException):
        return None
    for one in schema:
        raw = types.is_binary(one.type) or types.is_large_binary(one.type)
        packed = types.is_struct(one.type) and one.type.get_field_index("bytes") >= 0
        if packed or (raw and one.name.lower() in ("image", "img")):
            return str(one.name)
    return None


def _of_parquet(path: Path) -> ImageSource:
    import pyarrow.parquet

    column = _image_column(path)
    if column is None:
        raise InputError(f"{path}: no column of encoded images; name it image, with the bytes of a file in each row.")
    try:
        file = pyarrow.parquet.ParquetFile(path)
        label = next((name for name in ("label", "labels", "class") if name in file.schema_arrow.names), None)
        table = file.read([column] if label is None else [column, label])
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path}: the parquet file is damaged ({error}).") from error
    cells = table[column].to_pylist()
    given = [None] * len(cells) if label is None else table[label].to_pylist()
    labels = [None if one is None else str(one) for one in given]
    if not cells:
        raise InputError(f"{path}: the file holds no images.")

    def read(row: int) -> Pixels:
        cell = cells[row]
        raw = cell.get("bytes") if isinstance(cell, dict) else cell
        if raw is None:
            raise NotAnImageError("it is empty")
        return decoded(raw)

    entries = [(f"{path.name}[{row}]", one, _row_reader(read, row)) for row, one in enumerate(labels)]
    return ImageSource(str(path), file_digest(path), entries)


def _of_list(items: Sequence[Any]) -> ImageSource:
    """Arrays, Pillow images or paths; or tuples of one of these and a label."""
    if not len(items):
        raise InputError("The given list holds no images.")
    entries: list[tuple[str, str | None, Callable[[], Pixels]]] = []
    stated: list[str | bytes] = []
    for number, item in enumerate(items):
        image, label = item if isinstance(item, tuple) else (item, None)
        if isinstance(image, str | os.PathLike):
            path = Path(image)
            stated.append(f"{path} {_stat(path)} {label}")
            entries.append((str(path), None if label is None else str(label), _reader(path)))
        else:
            pixels = from_array(image)
            stated += [pixels.tobytes(), f"{pixels.shape} {label}"]
            entries.append((f"item {number}", None if label is None else str(label), _held(pixels)))
    return ImageSource("the given list", digest(*stated), entries)


def _held(pixels: Pixels) -> Callable[[], Pixels]:
    return lambda: pixels
