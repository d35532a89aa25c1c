"""A damaged token cache is made again, with one line, and holds what it held."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hash_tokenizer import HashTokenizer

from isotrope.data.corpus import Corpus, open_corpus
from isotrope.data.packing import PackedText, pack


def empty(file: Path) -> None:
    file.write_bytes(b"")


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def zero(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(bytes(content))


def remove(file: Path) -> None:
    file.unlink()


DAMAGES = [empty, cut, zero, flip, remove]
FILES = ["ids", "id_ends", "text", "text_ends", "keys", "documents", "starts", "values", "names", "corpus.json"]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    file = tmp_path / "labelled.tsv"
    rows = [f"sentence number {number} of a small file\t{'odd' if number % 2 else 'even'}" for number in range(50)]
    file.write_text("text\tlabel\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return file


def opened(text: Path) -> Corpus:
    return open_corpus(text, ["labelled"], HashTokenizer())


def content(corpus: Corpus) -> list[object]:
    rows = range(len(corpus))
    return [corpus.fingerprint, corpus.values, *((corpus.text(row), corpus.tokens(row).tolist()) for row in rows)]


@pytest.mark.usefixtures("corpora")
@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_corpus_is_made_again(
    text: Path, caplog: pytest.LogCaptureFixture, file: str, damage: Callable[[Path], None]
) -> None:
    caplog.set_level("INFO", "isotrope")
    before = opened(text)
    wanted = content(before)
    damage(before.folder / file)
    assert content(opened(text)) == wanted
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 1
    assert said[0].startswith(f"The token cache of {text} is damaged ({file} ")
    assert said[0].endswith("it is made again")
    assert content(opened(text)) == wanted
    assert len(caplog.records) == 1
    assert [entry.name for entry in before.folder.parent.iterdir()] == [before.folder.name]


@pytest.mark.usefixtures("corpora")
def test_a_cache_of_an_earlier_version_is_made_again(text: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "isotrope")
    corpus = opened(text)
    facts = json.loads((corpus.folder / "corpus.json").read_text())
    del facts["files"], facts["check"]
    (corpus.folder / "corpus.json").write_text(json.dumps(facts))
    assert content(opened(text)) == content(corpus)
    assert "holds no checksums" in caplog.text


@pytest.mark.usefixtures("corpora")
@pytest.mark.parametrize("file", ["train", "held", "packed.json"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_packed_text_is_made_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, file: str, damage: Callable[[Path], None]
) -> None:
    caplog.set_level("INFO", "isotrope")
    source = tmp_path / "documents.txt"
    documents = ["\n".join(f"words of document {one} in line {line}" for line in range(9)) for one in range(9)]
    source.write_text("\n\n".join(documents) + "\n", encoding="utf-8")

    def packed() -> PackedText:
        return pack([source], HashTokenizer(), 1, 2, 8)

    before = packed()
    wanted = np.array(before.train), np.array(before.held)
    (folder,) = (place for place in (tmp_path / "cache" / "packed").iterdir())
    damage(folder / file)
    found = packed()
    assert np.array_equal(found.train, wanted[0])
    assert np.array_equal(found.held, wanted[1])
    assert caplog.text.count("is damaged") == 1
