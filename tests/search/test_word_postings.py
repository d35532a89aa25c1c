"""Scores made block by block are those of bm25s, which holds all texts."""

from __future__ import annotations

import random

import numpy as np
import pytest

from isotrope.search import word_postings
from isotrope.search.word_postings import postings

K1, B = 1.2, 0.75


def drawn(texts: int, seed: int) -> list[list[str]]:
    """Texts of words that are common and rare; some texts are empty, some words stand several times."""
    rng = random.Random(seed)
    return [[f"w{int(rng.paretovariate(0.7))}" for _ in range(rng.randrange(12))] for _ in range(texts)]


@pytest.mark.parametrize("block", [1, 7, 4096])
@pytest.mark.parametrize("count", [1, 300])
def test_the_scores_are_those_of_the_library(monkeypatch: pytest.MonkeyPatch, block: int, count: int) -> None:
    bm25s = pytest.importorskip("bm25s")
    texts = [*drawn(count, 0), ["alone"]]
    monkeypatch.setattr(word_postings, "BLOCK", block)
    vocabulary, scores = postings(texts, K1, B)
    theirs = bm25s.BM25(method="lucene", k1=K1, b=B)
    ids = [[vocabulary[word] for word in words] for words in texts]
    theirs.index((ids, vocabulary), create_empty_token=False, show_progress=False)
    np.testing.assert_array_equal(scores["indptr"], theirs.scores["indptr"])
    np.testing.assert_array_equal(scores["indices"], theirs.scores["indices"])
    np.testing.assert_allclose(scores["data"], theirs.scores["data"], rtol=1e-5)
    assert scores["num_docs"] == len(texts)


def test_texts_without_a_word() -> None:
    vocabulary, scores = postings([[], []], K1, B)
    assert vocabulary == {}
    assert scores["num_docs"] == 2
    assert len(scores["data"]) == 0
