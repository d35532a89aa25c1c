"""Blocks of a text: together they are the text, whatever the format, the size and the order they are asked for in."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.errors import InputError
from isotrope.shards import text_blocks
from isotrope.shards.text_blocks import TextBlocks, count_lines
from isotrope.shards.vector_stream import VectorStream

LINES = ["\ufeffone two", "", "  three\tfour ", "fünf", "\u2003", "six", "seven é"]


def written(folder: Path, form: str, lines: list[str], end: str = "\n") -> Path:
    file = folder / f"text{form}"
    content = "\n".join(lines) + end
    if form == ".tsv":
        content = "sentence\n" + "\n".join(" ".join(line.split()) or "x" for line in lines) + "\n"
    file.write_bytes(gzip.compress(content.encode()) if form.endswith(".gz") else content.encode())
    return file


@pytest.mark.parametrize("form", [".txt", ".txt.gz", ".tsv"])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
@pytest.mark.parametrize("end", ["\n", ""])
def test_blocks_together_are_the_file(form: str, size: int, end: str, tmp_path: Path) -> None:
    file = written(tmp_path, form, LINES, end)
    whole = [record.texts[0] for record in read(file, record_type_named("sentences"))]
    blocks = TextBlocks(file, size=size)
    parts = list(blocks)
    assert [text for part in parts for text in part] == whole
    assert [len(part) for part in parts[:-1]] == [size] * (len(parts) - 1)
    assert blocks.count == len(parts) == TextBlocks(file, size=size).counted()


@pytest.mark.parametrize("form", [".txt", ".txt.gz"])
def test_any_block_can_be_asked_for_in_any_order(form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_blocks, "CHUNK", 5)  # bytes: line ends fall on every side of a chunk
    lines = [f"line {number}" for number in range(50)]
    blocks = TextBlocks(written(tmp_path, form, lines), size=8)
    for number in (5, 0, 6, 6, 2, 9, 3):
        assert blocks.block(number) == (lines[8 * number : 8 * number + 8] or None)
    assert blocks.count == 7


def test_a_bad_line_is_named_by_its_number_in_the_file(tmp_path: Path) -> None:
    file = tmp_path / "bad.txt"
    file.write_bytes(b"one\ntwo\nthree\nfo\xffur\n")
    with pytest.raises(InputError, match=r"bad\.txt:4: byte 0xff"):
        TextBlocks(file, size=2).block(1)


@pytest.mark.parametrize("form", [".txt", ".txt.gz"])
def test_a_plain_text_has_no_columns(form: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="plain text has no columns, and body was asked for"):
        TextBlocks(written(tmp_path, form, ["one"]), ["body"]).block(0)


def test_lines_are_counted_where_that_is_cheap(tmp_path: Path) -> None:
    assert count_lines(written(tmp_path, ".txt", LINES)) == len(LINES)
    assert count_lines(written(tmp_path, ".txt.gz", LINES)) is None


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8])
def test_a_file_that_grew_is_the_file_that_numpy_writes(dtype: type) -> None:
    rows = np.arange(60).reshape(12, 5).astype(dtype)
    grown, whole = io.BytesIO(), io.BytesIO()
    stream = VectorStream(grown)
    for start, end in ((0, 1), (1, 7), (7, 12)):
        stream.add(rows[start:end])
    stream.close()
    np.save(whole, rows)
    assert grown.getvalue() == whole.getvalue()
