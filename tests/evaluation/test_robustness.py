"""Robustness: changes are what they say, drawn from seed and text alone; scores are those of plain loops."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.robustness import CHANGES, changed_texts, other_texts
from isotrope.evaluation.scored_pairs import read_pairs
from isotrope.evaluation.suite import find_suite
from isotrope.views.text_damage import capitals, negated, shuffled, typos, unpunctuated, with_typos


@pytest.fixture
def data(tmp_path: Path, topics: list[str]) -> Path:
    (tmp_path / "sts").mkdir()
    rows = [f"x\t{topics[row]}, once.\t{topics[row + row % 5]}, again.\t{5 - row % 5}" for row in range(60)]
    lines = ["subset\tsentence1\tsentence2\tscore", *rows]
    (tmp_path / "sts" / "stsb.test.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def test_each_change_does_what_it_says() -> None:
    rng = np.random.default_rng(0)
    text = "A man is playing a guitar, slowly."
    assert capitals(text, rng) == "A MAN IS PLAYING A GUITAR, SLOWLY."
    assert capitals("ABC", rng) == "abc"
    assert unpunctuated(text, rng) == "A man is playing a guitar slowly"
    assert unpunctuated("no marks", rng) == "no marks."
    assert unpunctuated("?!", rng) == "?!"
    assert negated(text, rng) == "A man is not playing a guitar, slowly."
    assert negated(negated(text, rng), rng) == text
    assert negated("Two dogs run.", rng) == "It is not true that two dogs run."
    assert negated("A dog runs.", rng) == "It is not true that a dog runs."
    assert negated("NASA lands.", rng) == "It is not true that NASA lands."
    mixed = shuffled("the dog bites the man .", rng)
    assert sorted(mixed.split()) == sorted("the dog bites the man .".split())
    assert mixed.endswith(" .")
    assert mixed != "the dog bites the man ."
    assert shuffled("well well", rng) == "well well"
    broken = typos(text, rng)
    assert broken != text
    assert [sorted(word) for word in broken.split()] == [sorted(word) for word in text.split()]
    assert typos("a a", rng) == "a a"
    assert typos("ab", rng) == "ba"
    assert with_typos(text, 0, rng) == text


def test_a_change_hangs_on_seed_and_text_alone(topics: list[str]) -> None:
    for name in CHANGES:
        one = changed_texts(topics[:20], name, 0)
        assert one == changed_texts(topics[:20], name, 0)
        assert one[::-1] == changed_texts(topics[:20][::-1], name, 0)
    assert changed_texts(topics[:20], "typos", 0) != changed_texts(topics[:20], "typos", 1)
    twice = [*topics[:5], *topics[:5]]
    assert all(a != b for a, b in zip(twice, other_texts(twice, 0), strict=True))
    with pytest.raises(InputError, match="all the same"):
        other_texts(["a", "a"], 0)


def test_the_scores_are_those_of_plain_loops(tiny: Path, data: Path) -> None:
    found = isotrope.evaluate(tiny, "robustness", data)
    scores = found.scores["robustness"]
    pairs, encoder = read_pairs(data / "sts" / "stsb.test.tsv"), isotrope.load(tiny)

    def cosines(first: list[str], second: list[str]) -> np.ndarray:
        return np.array([float(encoder.similarity(a, b)[0, 0]) for a, b in zip(first, second, strict=True)])

    clean = 100 * spearmanr(cosines(pairs.first, pairs.second), pairs.gold)[0]
    assert scores["STS-B"] == pytest.approx(clean, abs=0.1)
    kept = {}
    for name in ("typos", "negation"):
        side = changed_texts(pairs.second, name, 0)
        kept[name] = cosines(pairs.second, side)
        moved = 100 * spearmanr(cosines(pairs.first, side), pairs.gold)[0]
        assert scores["changes"][name]["cosine"] == pytest.approx(kept[name].mean(), abs=1e-4)
        assert scores["changes"][name]["spearman"] == pytest.approx(moved, abs=0.1)
        assert scores["changes"][name]["lost"] == pytest.approx(clean - moved, abs=0.2)
        assert found.items[f"STS-B, {name}"].score() == pytest.approx(moved, abs=0.1)
    nearer = 100 * np.mean(kept["typos"] > kept["negation"])
    assert scores["ranking"]["typos over negation"]["share"] == pytest.approx(nearer, abs=0.01)
    assert found.items["typos over negation"].score() == pytest.approx(nearer, abs=0.01)
    shares = [each["share"] for name, each in scores["ranking"].items() if "another" not in name]
    assert scores["average"]["share"] == pytest.approx(np.mean(shares))
    assert find_suite("robustness")().summary(found)["robustness_ranking"] == scores["average"]["share"]
    assert "of the way to another" in found.table()
    assert isotrope.evaluate(tiny, "robustness", data).scores == found.scores


def test_degenerate_vectors_have_no_score(tiny: Path, data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    encoder = isotrope.load(tiny)
    monkeypatch.setattr(encoder, "encode", lambda texts, **named: np.ones((len(texts), 32), dtype=np.float32))
    found = isotrope.evaluate(encoder, "robustness", data).scores["robustness"]
    assert found["average"]["share"] == 0
    assert found["STS-B"] == 0
    assert all(each["lost"] == 0 for each in found["changes"].values())
    monkeypatch.setattr(encoder, "encode", lambda texts, **named: np.full((len(texts), 32), np.nan, np.float32))
    with pytest.raises(InputError, match="NaN or infinite vectors"):
        isotrope.evaluate(encoder, "robustness", data)


def test_a_missing_file_is_refused_before_the_model_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"stsb\.test\.tsv\.gz is missing"):
        isotrope.evaluate("no/such/model", "robustness", tmp_path)
