"""A text that is longer than the model reads is counted and said, whoever asks for its vector."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import isotrope
from isotrope.cli import main
from isotrope.encoders.cut_texts import count_cut, counting_cut
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.vector_cache import shared_vectors

LONG, SHORT = "the chef bakes the bread in the warm kitchen " * 20, "the chef bakes"


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text(f"{SHORT}\n{LONG}\nsailor {LONG}\n", encoding="utf-8")
    return path


def test_what_is_encoded_in_a_block_is_counted(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    with counting_cut() as outer:
        encoder.encode([LONG])
        with counting_cut() as inner:
            encoder.encode([SHORT, LONG])
    assert (inner.texts, inner.cut, inner.max_length) == (2, 1, encoder.max_length)
    assert (outer.texts, outer.cut) == (1, 1)


def test_the_count_agrees_with_the_tokenizer_at_the_border(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    room = encoder.max_length - 2
    word = "the"
    assert encoder.text_tokenizer.flat([word])[1].tolist() == [1]
    assert count_cut(encoder, [" ".join([word] * room), " ".join([word] * (room + 1)), SHORT]) == 1
    encoder.prompt = "the chef: "
    assert count_cut(encoder, [" ".join([word] * room)]) == 1


def test_vectors_of_a_cache_are_counted_as_new_ones_are(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    with shared_vectors(disk=False):
        for _ in range(2):
            with counting_cut() as counted:
                TextVectors.encoded(encoder, [LONG, SHORT])
            assert (counted.texts, counted.cut) == (2, 1)


def said_by(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[str, str]:
    with pytest.raises(SystemExit) as stop:
        main([str(word) for word in words])
    captured = capsys.readouterr()
    assert stop.value.code == 0, captured.err
    return captured.out, captured.err


def test_encode_search_and_evaluate_say_it(
    capsys: pytest.CaptureFixture[str], tiny: Path, text: Path, tmp_path: Path
) -> None:
    out, err = said_by(capsys, "encode", tiny, text, "--output", tmp_path / "v.npy", "--json")
    assert json.loads(out)["cut"] == 2
    assert "2 of 3 texts are longer than the model reads (64 tokens) and were cut" in err
    for _ in range(2):  # the second time they stand in the index, which remembers them
        assert "2 of the 3 texts of the index are longer" in said_by(capsys, "search", tiny, text, "the boat")[1]
    assert "1 of 1 texts are longer" in said_by(capsys, "search", tiny, text, LONG)[1]
    out, err = said_by(capsys, "evaluate", tiny, "--suite", "geometry", "--text", text, "--json", "--no-leaks")
    assert "texts are longer" in err
    assert json.loads(out)["cost"]["texts cut at 64 tokens"] == 2


def test_an_index_counts_what_it_holds(tiny: Path, tmp_path: Path) -> None:
    """Whatever came, went, was reused or replaced."""
    place, table = tmp_path / "index", tmp_path / "a.tsv"
    table.write_text(f"doc\ttext\na\t{SHORT}\nb\t{LONG}\nc\t{LONG} {LONG}\n", encoding="utf-8")
    isotrope.index(tiny, table, place, id_column="doc")
    counts = [isotrope.open_index(place).info()["cut"]]
    more = tmp_path / "more.tsv"
    more.write_text(f"doc\ttext\nb\t{SHORT}\nd\t{SHORT} {LONG}\n", encoding="utf-8")
    isotrope.index(tiny, more, place, id_column="doc", add=True)
    counts.append(isotrope.open_index(place).info()["cut"])
    isotrope.index(tiny, output=place, delete="doc = 'd'")
    counts.append(isotrope.open_index(place).info()["cut"])
    table.write_text(f"doc\ttext\na\t{SHORT}\nc\t{LONG} {LONG}\nnew\t{SHORT} {SHORT}\n", encoding="utf-8")
    made = isotrope.index(tiny, table, place, id_column="doc", update=True)
    assert (made.reused, made.encoded) == (2, 1)
    counts.append(isotrope.open_index(place).info()["cut"])
    assert counts == [2, 2, 1, 1]


def test_nothing_is_said_of_short_texts(
    capsys: pytest.CaptureFixture[str], tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    assert "cut" not in said_by(capsys, "encode", tiny, sentences, "--output", tmp_path / "v.npy")[1]
