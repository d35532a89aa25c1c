"""An index whose files are not as they were written is refused when it is opened; a kept one is made again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import isotrope
from isotrope.errors import InputError

FILES = ["index.json", "blocks/*/vectors.npy", "blocks/*/rows*", "words-*/vocab*", "codes-*", "ranges-*"]


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) * 3 // 4] ^= 64
    file.write_bytes(bytes(content))


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


@pytest.fixture(scope="module")
def built(tiny: Path, topics: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    (folder / "text.txt").write_text("\n".join(topics[:40]) + "\n", encoding="utf-8")
    isotrope.index(tiny, folder / "text.txt", folder / "index", precision="int8")
    return folder / "index"


@pytest.mark.parametrize("pattern", FILES)
@pytest.mark.parametrize("damage", [flip, cut, Path.unlink])
def test_a_damaged_file_is_refused(
    built: Path, tmp_path: Path, pattern: str, damage: Callable[[Path], None], topics: list[str]
) -> None:
    shutil.copytree(built, tmp_path / "index")
    assert isotrope.search(tmp_path / "index", topics[0], top=1)[0].text == topics[0]
    damage(next((tmp_path / "index").glob(pattern)))
    with pytest.raises(InputError, match=r"not as it was written|no index is here|not readable"):
        isotrope.search(tmp_path / "index", topics[0])


def test_a_kept_index_is_made_again(tiny: Path, topics: list[str], tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(topics[:40]) + "\n", encoding="utf-8")
    wanted = isotrope.search(tiny, text, topics[3])
    flip(next(tmp_path.rglob("vectors.npy")))
    assert isotrope.search(tiny, text, topics[3]) == wanted


def test_rows_that_are_added_keep_the_sums_of_those_before(built: Path, tiny: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "index")
    (tmp_path / "more.txt").write_text("a row of its own\n", encoding="utf-8")
    isotrope.index(tiny, tmp_path / "more.txt", tmp_path / "index", precision="int8", add=True)
    assert isotrope.search(tmp_path / "index", "a row of its own", top=1)[0].text == "a row of its own"
    flip(sorted((tmp_path / "index").glob("blocks/*/vectors.npy"))[0])
    with pytest.raises(InputError, match="not as it was written"):
        isotrope.search(tmp_path / "index", "a row")
