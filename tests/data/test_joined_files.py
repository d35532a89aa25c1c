"""Several files, or standard input, as one."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from isotrope.data import joined_files
from isotrope.data.joined_files import one_file
from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.data.text_lines import lines_of
from isotrope.errors import InputError


def texts(path: Path, record_type: str) -> list[tuple[str, ...]]:
    return [record.texts for record in read(path, record_type_named(record_type)) if any(record.texts)]


def test_one_file_stays_itself_and_several_are_joined_in_order(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    with gzip.open(tmp_path / "b.txt.gz", "wt", encoding="utf-8") as packed:
        packed.write("three\n")
    assert one_file([tmp_path / "a.txt"]) == tmp_path / "a.txt"
    joined = one_file([tmp_path / "a.txt", tmp_path / "b.txt.gz"])
    assert texts(joined, "sentences") == [("one",), ("two",), ("three",)]
    documents = {record.document for record in read(joined, record_type_named("documents")) if record.texts[0]}
    assert len(documents) == 2
    assert one_file([tmp_path / "a.txt", tmp_path / "b.txt.gz"]) == joined


def test_tables_are_joined_by_their_columns(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("query\tpassage\na\tb\n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(json.dumps({"passage": "d", "query": "c"}) + "\n", encoding="utf-8")
    joined = one_file([tmp_path / "a.tsv", tmp_path / "b.jsonl"])
    assert texts(joined, "pairs") == [("a", "b"), ("c", "d")]
    (tmp_path / "c.csv").write_text("text\nx\n", encoding="utf-8")
    with pytest.raises(InputError, match="give files with the same columns"):
        one_file([tmp_path / "a.tsv", tmp_path / "c.csv"])
    (tmp_path / "d.txt").write_text("x\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"d.txt is plain text and .*a.tsv is a table"):
        one_file([tmp_path / "a.tsv", tmp_path / "d.txt"])


@pytest.mark.parametrize(
    ("content", "suffix"),
    [(b"one\ntwo\n", ".txt"), (b"query\tpassage\na\tb\n", ".tsv"), (b'{"text": "one"}\n', ".jsonl")],
)
def test_standard_input_is_kept_as_a_file(content: bytes, suffix: str) -> None:
    kept = one_file(["-"], io.BytesIO(content))
    assert kept.suffix == suffix
    assert kept.read_bytes() == content


def test_standard_input_that_is_empty_or_named_twice_is_refused() -> None:
    with pytest.raises(InputError, match="Standard input is empty"):
        one_file(["-"], io.BytesIO(b"\n"))
    with pytest.raises(InputError, match="can be read once"):
        one_file(["-", "-"], io.BytesIO(b"a\n"))


@pytest.mark.parametrize("change", [lambda raw: b"", lambda raw: raw[:-4], lambda raw: raw.replace(b"a", b"b")])
def test_a_damaged_file_of_the_cache_is_made_again(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    change: Callable[[bytes], bytes],
) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    caplog.set_level("INFO", "isotrope")
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"one line of {name}\nanother\n", encoding="utf-8")
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for call in (lambda: one_file(files), lambda: one_file(["-"], io.BytesIO(b"a line from a pipe\n"))):
        caplog.clear()
        place = call()
        before = place.read_bytes()
        place.write_bytes(change(before))
        assert call() == place
        assert place.read_bytes() == before
        assert f"{place}: damaged" in caplog.text
        caplog.clear()
        assert call().read_bytes() == before
        assert caplog.text == ""


def test_joined_cells_are_those_of_the_files(tmp_path: Path) -> None:
    """Bytes are text, a number that is none is missing, and half a character is refused where it is read."""
    import pyarrow
    import pyarrow.parquet

    for name, text, number in (("a", "naïve".encode(), float("nan")), ("b", b"two", 1.0)):
        table = pyarrow.table({"text": pyarrow.array([text]), "number": [number], "part": [[{"x": text}]]})
        pyarrow.parquet.write_table(table, tmp_path / f"{name}.parquet")
    joined = one_file([tmp_path / "a.parquet", tmp_path / "b.parquet"])
    assert texts(joined, "sentences") == [("naïve",), ("two",)]
    assert [json.loads(line)["number"] for line in joined.read_text(encoding="utf-8").splitlines()] == [None, 1.0]
    (tmp_path / "a.jsonl").write_text('{"text": "whole", "other": "\\ud83d"}\n', encoding="utf-8")
    (tmp_path / "b.jsonl").write_text('{"text": "\\ud83d", "other": ""}\n', encoding="utf-8")
    assert texts(one_file([tmp_path / "a.jsonl", tmp_path / "a.jsonl"]), "sentences") == [("whole",), ("whole",)]
    with pytest.raises(InputError, match="half a character"):
        texts(one_file([tmp_path / "a.jsonl", tmp_path / "b.jsonl"]), "sentences")


def test_bytes_that_are_no_text_are_refused_when_they_are_joined_too(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    for name, text in (("a", b"one"), ("b", b"\xff\xfe")):
        pyarrow.parquet.write_table(pyarrow.table({"text": pyarrow.array([text])}), tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="half a character or bytes that are not UTF-8"):
        texts(one_file([tmp_path / "a.parquet", tmp_path / "b.parquet"]), "sentences")


def test_a_mark_before_the_first_line_does_not_hide_json(tmp_path: Path) -> None:
    assert one_file(["-"], io.BytesIO(b'\xef\xbb\xbf{"text": "one"}\n')).suffix == ".jsonl"


def test_a_file_that_grows_while_it_is_joined_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / "cache"))
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    for file in files:
        file.write_text(f"{file.name} one\ntwo\n", encoding="utf-8")

    def growing(path: Path) -> Iterator[str]:
        for _, line in lines_of(path):
            yield line
        with path.open("a", encoding="utf-8") as more:
            more.write("three\n")

    monkeypatch.setattr(joined_files, "_lines", growing)
    with pytest.raises(InputError, match=r"a.txt: the file changed while it was read"):
        one_file(files)
    assert not [file for file in (tmp_path / "cache").rglob("*") if file.is_file()]
