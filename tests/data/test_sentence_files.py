"""Sentences of files and lists: lines, empty records, columns, and each file read once."""

from __future__ import annotations

from pathlib import Path

import pytest

from isotrope.data import readers
from isotrope.data.sentence_files import read_sentence_file, records_of, sentences_of, some_sentences
from isotrope.errors import InputError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    place = tmp_path / "a.txt"
    place.write_text("one  line\n\n \ntwo\n", encoding="utf-8")
    return place


def test_empty_records_are_left_out_and_counted(file: Path) -> None:
    found = read_sentence_file(file)
    assert (found.texts, found.lines, found.empty) == (["one line", "two"], [1, 4], 2)
    assert sentences_of(file) == found.texts
    assert sentences_of(["one  line", "", "two"]) == found.texts


def test_columns_are_chosen(tmp_path: Path) -> None:
    table = tmp_path / "a.tsv"
    table.write_text("text\tother\na\tb\n", encoding="utf-8")
    assert sentences_of(table) == ["a"]
    assert sentences_of(table, ["other"]) == ["b"]
    with pytest.raises(InputError, match="no column 'third'"):
        sentences_of(table, ["third"])


def test_a_source_without_sentences(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n \n", encoding="utf-8")
    assert read_sentence_file(tmp_path / "empty.txt").texts == []
    for read in (sentences_of, some_sentences):
        with pytest.raises(InputError, match=r"empty\.txt: no sentences found"):
            read(tmp_path / "empty.txt")


def test_a_file_is_opened_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = []
    lines_of = readers.lines_of
    monkeypatch.setattr(readers, "lines_of", lambda path: opened.append(path) or lines_of(path))
    _, records = records_of(file, "sentences")
    assert len(list(records)) == 4
    assert opened == [file]
