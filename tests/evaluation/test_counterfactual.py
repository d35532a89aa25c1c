"""Synonym against antonym, and counterfactual pairs: what is made, what is counted, what is said."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.cli import main
from isotrope.errors import InputError
from isotrope.evaluation.antonym_triples import HitRates, hit_rates, make_triples
from isotrope.evaluation.counterfactual import (
    Items,
    Share,
    counterfactual_accuracy,
    counterfactual_pairs,
    edits_of_one,
)
from isotrope.measures.intervals import Interval, grouped_interval, normal_interval

EVERY = Interval(0.0, 1.0)  # of which nothing is asked here

ITEMS = [
    ("entailment", "a man sleeps", "a person rests"),
    ("contradiction", "a man runs", "a person rests"),
    ("contradiction", "a man sleeps", "a person runs"),
    ("neutral", "a man sleeps", "a tall person rests"),
    ("entailment", "a dog barks", "an animal is loud"),
    ("entailment", "a big dog barks", "an animal is loud"),
]


class Table:
    """An encoder that knows the vector of each text."""

    device = "cpu"

    def __init__(self, vectors: dict[str, list[float]]) -> None:
        self.vectors = vectors

    def encode(self, texts: list[str], normalize_embeddings: bool = False) -> Any:
        assert not normalize_embeddings
        return np.array([self.vectors[text] for text in texts], dtype=np.float32)


def items(rows: list[tuple[str, str, str]]) -> Items:
    return Items([row[1] for row in rows], [row[2] for row in rows], [row[0] for row in rows])


def test_a_triple_differs_in_one_word_of_the_same_inflection_and_case() -> None:
    assert make_triples(["Big boats are here", "of the and", "they go quickly"]) == [
        ("Big boats are here", "Large boats are here", "Little boats are here"),
        ("they go quickly", "they go rapidly", "they go slowly"),
    ]
    texts = ["an old boat and a warm house"] * 50
    assert make_triples(texts, 1) == make_triples(texts, 1)
    assert len({triple[1] for triple in make_triples(texts)}) == 2  # either word
    with pytest.raises(InputError, match="English"):
        make_triples(["der Koch", ""])


def test_a_hit_is_by_cosine_or_by_dot_product_and_a_tie_is_none() -> None:
    table = Table({"o": [1, 0], "near": [0.5, 0.1], "far": [1, 5], "same": [2, 0]})
    triples = [("o", "near", "far"), ("o", "far", "near"), ("o", "same", "same"), ("o", "near", "far")]
    assert hit_rates(table, triples) == HitRates(by_cosine=0.5, by_dot_product=0.25)  # type: ignore[arg-type]


def test_pairs_share_one_side_and_differ_in_the_label() -> None:
    assert counterfactual_pairs(items(ITEMS)) == [(0, 1), (0, 2), (0, 3), (2, 3)]


def test_accuracy_over_items_and_over_pairs() -> None:
    """One number gives the label away, on one side; where it lies, the classifier is wrong."""
    rng = np.random.default_rng(0)
    labels = ("entailment", "neutral", "contradiction")
    vectors, rows = {}, []
    for number in range(90):
        label = labels[number % 3]
        vectors[f"p{number // 3}"] = [1.0, 0.0, 0.0]
        vectors[f"h{number}"] = [1.0, (1.0, 0.0, -1.0)[number % 3] + 0.01 * rng.normal(), float(number % 3)]
        rows.append((label, f"p{number // 3}", f"h{number}"))
    vectors["h0"] = vectors["h2"]  # the first entailment looks like a contradiction
    found = counterfactual_accuracy(Table(vectors), items(rows[30:]), items(rows[30:]), items(rows[:30]))  # type: ignore[arg-type]
    assert found.accuracy == Share(pytest.approx(29 / 30), 30, EVERY)  # type: ignore[arg-type]
    assert found.both_right == Share(pytest.approx(28 / 30), 30, EVERY)  # type: ignore[arg-type]
    assert found.entailed_nearer == Share(pytest.approx(9 / 10), 10, EVERY)  # type: ignore[arg-type]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    def write(name: str, rows: list[tuple[str, ...]]) -> None:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        with gzip.open(tmp_path / name, "wt", encoding="utf-8") as file:
            file.write("\n".join("\t".join(row) for row in rows) + "\n")

    write(
        "transfer/mr.tsv.gz",
        [("label", "sentence"), ("1", "the warm kitchen"), ("0", "an old boat"), ("0", "an old boat")],
    )
    for part in ("train", "dev", "test"):
        write(f"nli/cad_snli.{part}.tsv.gz", [("label", "premise", "hypothesis"), *ITEMS])
    return tmp_path


def test_the_command(folder: Path, tiny: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(
            [
                "evaluate",
                str(tiny),
                "--suite",
                "counterfactual",
                "--data-dir",
                str(folder),
                "--json",
                str(tmp_path / "out.json"),
            ]
        )
    assert stop.value.code == 0
    printed = capsys.readouterr().out
    assert "synonym nearer than antonym" in printed
    found = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert {name: score["count"] for name, score in found["scores"]["counterfactual"].items()} == {
        "synonym_nearer": 2, "synonym_nearer_dot": 2, "accuracy": 6, "both_right": 4, "entailed_nearer": 2,
    }  # fmt: skip
    assert found["protocol"]["protocol"] == "counterfactual-v1"


def test_what_is_missing_is_named(folder: Path, tiny: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ISOTROPE_WORDNET", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="wordnet-base"):
        isotrope.evaluate(tiny, suite="counterfactual", data_dir=folder)
    (folder / "nli" / "cad_snli.dev.tsv.gz").unlink()
    with pytest.raises(InputError, match=r"cad_snli\.dev"):
        isotrope.evaluate(tiny, suite="counterfactual", data_dir=folder)


def test_edits_of_one_original_are_one_group_and_make_no_interval_narrower() -> None:
    """Items 0 to 3 share a premise or a hypothesis, 4 and 5 a premise, 6 is alone."""
    rows = [("a", *sides) for sides in ("ph", "pi", "qh", "qj", "rk", "rl", "sm")]
    groups = edits_of_one(items(rows)).tolist()
    assert [groups.index(group) for group in groups] == [0, 0, 0, 0, 4, 4, 6]
    hits = np.array([True, False, True, True, False])
    plain = grouped_interval(hits, np.arange(5))
    assert plain == pytest.approx(normal_interval(0.6, 5))
    assert grouped_interval(np.repeat(hits, 6), np.repeat(np.arange(5), 6)) == pytest.approx(plain)


def test_a_test_part_without_pairs_gets_a_sentence() -> None:
    rows = [("entailment", f"p{number}", f"h{number}") for number in range(4)]
    rows += [("contradiction", f"q{number}", f"i{number}") for number in range(4)]
    vectors = {text: np.random.default_rng(len(text)).normal(size=3) for row in rows for text in row[1:]}
    with pytest.raises(InputError, match="no pair of items that share a side"):
        counterfactual_accuracy(Table(vectors), *(items(rows) for _ in range(3)))  # type: ignore[arg-type]
