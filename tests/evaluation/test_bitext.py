"""Bitext: accuracy is that of a slow loop, both ways; ties lose, and a repeated translation counts as right."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.bitext import Bitext, matches, read_bitext
from isotrope.evaluation.suite import find_suite

HEADER = "language\tsentence\tenglish"


@pytest.fixture
def data(tmp_path: Path, topics: list[str]) -> Path:
    """Two languages: one is English in capitals, the other has the words backwards."""
    rows = [f"cap\t{text.upper()}\t{text}" for text in topics[:30]]
    rows += [f"bak\t{' '.join(text.split()[::-1])}\t{text}" for text in topics[30:70]]
    return write(tmp_path, rows)


def write(folder: Path, rows: list[str]) -> Path:
    (folder / "parallel").mkdir(exist_ok=True)
    (folder / "parallel" / "tatoeba_eng.tsv").write_text("\n".join([HEADER, *rows]) + "\n", encoding="utf-8")
    return folder


def test_accuracy_is_that_of_a_slow_loop(tiny: Path, data: Path) -> None:
    found = isotrope.evaluate(tiny, "bitext", data)
    encoder = isotrope.load(tiny)
    scores = found.scores["bitext"]
    for name, pairs in read_bitext(data / "parallel" / "tatoeba_eng.tsv").items():
        cosines = encoder.similarity(pairs.sentences, pairs.english).astype(np.float64)
        there = [int(np.argmax(row)) == number for number, row in enumerate(cosines)]
        back = [int(np.argmax(row)) == number for number, row in enumerate(cosines.T)]
        assert scores[name]["to_english"] == pytest.approx(100 * np.mean(there), abs=0.01)
        assert scores[name]["from_english"] == pytest.approx(100 * np.mean(back), abs=0.01)
        assert scores[name]["accuracy"] == pytest.approx(100 * np.mean([*there, *back]), abs=0.01)
        assert found.items[name].score() == pytest.approx(scores[name]["accuracy"])
    assert scores["cap"]["pairs"] == 30
    assert scores["average"]["accuracy"] == pytest.approx((scores["cap"]["accuracy"] + scores["bak"]["accuracy"]) / 2)
    short = find_suite("bitext")().summary(found)
    assert list(short) == ["bitext_average", "bitext_bak", "bitext_cap"]
    assert scores["cap"]["baselines"]["TF-IDF"]["accuracy"] > 60  # the same words, but it drops single digits
    assert scores["cap"]["baselines"]["random vectors"]["accuracy"] < 30
    assert "random vectors" in found.table()
    assert "baselines" not in isotrope.evaluate(tiny, "bitext", data, baselines=False).scores["bitext"]["cap"]


def test_a_tie_is_wrong_and_the_same_text_twice_is_right() -> None:
    pairs = Bitext(["eins", "zwei", "drei"], ["one", "two", "one"])
    first = np.eye(3, dtype=np.float32)
    second = np.stack([first[0], first[1], first[0]])  # the third "one" is the first "one"
    assert matches(first, second, pairs)[0].tolist() == [1, 1, 0]
    assert matches(second, first, Bitext(pairs.english, pairs.sentences))[1].tolist() == [1, 1, 0]
    assert matches(second, first, Bitext(pairs.english, pairs.sentences))[0].tolist() == [1, 1, 0]
    ones = np.ones((3, 4), dtype=np.float32)
    assert matches(ones, ones, pairs).sum() == 0


def test_degenerate_vectors_have_no_score(tiny: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = isotrope.load(tiny)
    monkeypatch.setattr(encoder, "encode", lambda texts, **named: np.ones((len(texts), 32), dtype=np.float32))
    assert isotrope.evaluate(encoder, "bitext", data).scores["bitext"]["average"]["accuracy"] == 0
    monkeypatch.setattr(encoder, "encode", lambda texts, **named: np.full((len(texts), 32), np.nan, np.float32))
    with pytest.raises(InputError, match="NaN or infinite vectors"):
        isotrope.evaluate(encoder, "bitext", data)


@pytest.mark.parametrize(
    ("rows", "said"),
    [([], "no pairs found"), (["deu\t\tx"], "no pairs found"), (["deu\teins\tone"], "language 'deu' has one pair")],
)
def test_what_cannot_be_matched_is_refused(tmp_path: Path, rows: list[str], said: str) -> None:
    with pytest.raises(InputError, match=said):
        isotrope.evaluate("no/such/model", "bitext", write(tmp_path, rows))


def test_a_missing_file_is_refused_before_the_model_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"tatoeba_eng\.tsv\.gz is missing"):
        isotrope.evaluate("no/such/model", "bitext", tmp_path)
