"""A folder of documents: which files are read, in which order, and what is said of the others."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from isotrope.data.image_sources import is_image_source
from isotrope.data.prose_files import is_prose, prose_files
from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.data.tables import check_file
from isotrope.errors import InputError


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("A text.\n", encoding="utf-8")


def names_in(folder: Path) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in prose_files(folder).paths]


def read_lines(place: Path) -> list[str]:
    return [record.texts[0] for record in read(place, record_type_named("sentences"))]


def test_documents_in_order_without_what_nobody_wrote(tmp_path: Path) -> None:
    kept = ["a.md", "a/b.rst", "a/c/D.TXT", "b.markdown"]
    write(tmp_path, *reversed(kept), "z.py", ".hidden.md", ".git/a.md", "node_modules/p/README.md", "a/build/x.md")
    write(tmp_path, "venv/lib/x.txt", "a/__pycache__/x.md", "run/run.json", "run/model/README.md")
    write(tmp_path, "encoder/modules.json", "encoder/README.md")
    assert sorted(names_in(tmp_path)) == sorted(kept)
    assert names_in(tmp_path) == names_in(tmp_path)
    assert prose_files(tmp_path).others == {".py": 1}


def test_a_folder_that_was_named_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    write(tmp_path, "build/a.md")
    assert names_in(tmp_path / "build") == ["a.md"]


def test_links_to_folders_lead_nowhere_and_those_to_files_are_documents(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "elsewhere/b.md")
    (tmp_path / "docs" / "circle").symlink_to(tmp_path / "docs")
    (tmp_path / "docs" / "linked.md").symlink_to(tmp_path / "elsewhere" / "b.md")
    assert names_in(tmp_path / "docs") == ["a.md", "linked.md"]


def test_a_cache_among_the_documents_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, "docs/a.md")
    monkeypatch.chdir(tmp_path)
    for cache, place in {"docs/cache": "docs", "docs/deep/cache": str(tmp_path / "docs"), "own": "."}.items():
        monkeypatch.setenv("ISOTROPE_CACHE", cache)
        for _ in range(2):
            assert read_lines(Path(place)) == ["A text."]
        assert any((tmp_path / cache).rglob("*.txt"))
        shutil.rmtree(tmp_path / cache)


@pytest.mark.parametrize(("names", "told"), [([], "no file"), (["a.py", "b.py", "LICENSE"], "2 .py, 1 without an en")])
def test_a_folder_without_text_is_a_sentence_with_what_is_there(tmp_path: Path, names: list[str], told: str) -> None:
    write(tmp_path, *names)
    with pytest.raises(InputError, match=f"this is a folder without text .* and with {told}"):
        check_file(tmp_path)


def test_what_is_read_as_documents(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "a.txt")
    assert is_prose(tmp_path)
    assert is_prose(tmp_path / "a.md")
    assert not is_prose(tmp_path / "a.txt")  # its lines are texts
    with pytest.raises(InputError, match="no such file"):
        check_file(tmp_path / "nowhere.md")


def test_figures_make_no_images_of_documents_and_read_me_files_no_documents_of_images(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "docs/b.md", "docs/figure.png", "images/README.md", "images/1.png", "images/2.png")
    assert not is_image_source(tmp_path / "docs")
    assert is_image_source(tmp_path / "images")
    write(tmp_path, "docs/metadata.csv")
    assert is_image_source(tmp_path / "docs")


@pytest.mark.skipif(os.name == "nt", reason="names there are always text")
def test_a_name_that_is_not_utf8_is_left_out_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    write(tmp_path, "docs/a.md")
    for name in (b"docs/caf\xe9.md", b"docs/caf\xe9/a.md", b"docs/caf\xe9.png"):
        path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
        path.parent.mkdir(exist_ok=True)
        path.write_text("x", encoding="utf-8")
    assert names_in(tmp_path / "docs") == ["a.md"]
    caplog.set_level("INFO", logger="isotrope")
    assert read_lines(tmp_path / "docs") == ["A text."]
    said = "2 files are no text and left out: docs/caf\\udce9.md (its name is not UTF-8), docs/caf\\udce9/a.md"
    assert any(said in line for line in caplog.messages)


def test_a_folder_that_cannot_be_read_is_left_out_and_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    write(tmp_path, "docs/a.md", "docs/secret/b.md")
    shut, scandir = tmp_path / "docs" / "secret", os.scandir

    def refusing(place: str) -> object:
        if Path(place) == shut:
            raise PermissionError(13, "Permission denied", str(place))
        return scandir(place)

    monkeypatch.setattr(os, "scandir", refusing)
    caplog.set_level("INFO", logger="isotrope")
    assert read_lines(tmp_path / "docs") == ["A text."]
    assert any("1 file is no text and left out: docs/secret (Permission denied)" in line for line in caplog.messages)
    with pytest.raises(InputError, match=r"folder without text .*secret \(Permission denied\)"):
        check_file(shut)
