"""Measures without labels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.data.corpus import Corpus, open_corpus
from isotrope.evaluation.label_free import Retrieval, halves, label_free, natural_pairs, retrieval


def open_with(folder: Path, source: object, kinds: tuple[str, ...]) -> Corpus:
    tokenizer = isotrope.load(folder).text_tokenizer
    return open_corpus(source, kinds, tokenizer)  # type: ignore[arg-type]


def test_retrieval_of_perfect_reversed_and_collapsed_pairs() -> None:
    assert retrieval(np.eye(5), np.eye(5)) == Retrieval(mrr=1.0, first=1.0)
    assert retrieval(np.eye(2), np.eye(2)[::-1]).mrr == 0.5
    collapsed = retrieval(np.ones((9, 3)), np.ones((9, 3)))
    assert collapsed.first == 0  # a space in which everything is equal finds nothing
    assert collapsed.mrr == pytest.approx(1 / 5)


def test_halves_are_cut_between_words_or_characters() -> None:
    assert halves("one two three four five six") == ("one two three", "four five six")
    assert halves("今天天气很好我们去公园散步吧") == ("今天天气很好我", "们去公园散步吧")
    assert halves("too short") is None
    assert halves("too short", words=2) == ("too", "short")


def test_documents_give_neighbours_pairs_give_pairs_and_loose_sentences_give_halves(
    tiny: Path, sentences: Path
) -> None:
    corpus = open_with(tiny, sentences, ("sentences",))
    origin, first, second = natural_pairs(corpus, np.arange(80))
    assert origin == "neighbours"
    position = {corpus.text(row): row for row in range(80)}
    assert all(
        position[b] == position[a] + 1 and position[a] // 8 == position[b] // 8
        for a, b in zip(first, second, strict=True)
    )
    assert natural_pairs(open_with(tiny, [("a b", "b c"), ("d e", "f g")], ("pairs",)), np.arange(2)) == (
        "pairs",
        ["a b", "d e"],
        ["b c", "f g"],
    )
    loose = [f"one two three four five number {i}" for i in range(30)]
    assert natural_pairs(open_with(tiny, loose, ("sentences",)), np.arange(30))[0] == "halves"


def test_label_free_measures_are_finite_and_named(tiny: Path, sentences: Path) -> None:
    corpus = open_with(tiny, sentences, ("sentences",))
    measures = label_free(isotrope.load(tiny), natural_pairs(corpus, np.arange(200)))
    assert set(measures) == {
        "retrieval_mrr",
        "retrieval_first",
        "alignment",
        "uniformity",
        "effective_rank",
        "mean_cosine",
    }
    assert all(np.isfinite(value) for value in measures.values())
