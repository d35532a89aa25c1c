"""Late interaction against a naive loop, and what its weights do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isotrope.measures.late_interaction import best_matches, rarity


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_each_token_has_its_best_match(dtype: type) -> None:
    rng = np.random.default_rng(0)
    query = unit(rng.standard_normal((3, 8))).astype(dtype)
    documents = [unit(rng.standard_normal((count, 8))).astype(dtype) for count in (5, 1, 7)]
    expected = [[max(float(np.dot(one, other)) for other in document) for one in query] for document in documents]
    assert best_matches(query, documents) == pytest.approx(
        np.array(expected), abs=2e-3 if dtype == np.float16 else 1e-6
    )


def test_a_document_without_tokens_matches_nothing() -> None:
    query = unit(np.random.default_rng(0).standard_normal((2, 4)))
    assert best_matches(query, [query[:0], query]).tolist() == [[0.0, 0.0], pytest.approx([1.0, 1.0], abs=1e-6)]
    assert best_matches(query[:0], [query]).shape == (1, 0)
    assert best_matches(query, []).shape == (0, 2)


def test_what_every_document_has_weighs_least() -> None:
    matches = np.array([[1.0, 1.0, -0.5], [1.0, 0.0, -0.5], [1.0, 0.0, 0.0]])
    weights = rarity(matches)
    assert weights.tolist() == pytest.approx([math.log(1 + 4 / 3.5), math.log(1 + 4 / 1.5), math.log(1 + 4 / 0.5)])
