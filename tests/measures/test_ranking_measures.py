"""Measures of a ranking against a slow loop, against scikit-learn, and at their fixed points."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isotrope.measures.ranking_measures import average_precision, ndcg, recall, reciprocal_rank


def made(queries: int = 40, documents: int = 150) -> tuple[np.ndarray, np.ndarray]:
    """Grades 0 to 3, most of them 0, and scores without ties."""
    rng = np.random.default_rng(0)
    grades = np.where(rng.random((queries, documents)) < 0.1, rng.integers(1, 4, (queries, documents)), 0).astype(float)
    grades[:, 0] = 1  # something is relevant
    return grades, rng.normal(size=grades.shape) + grades


def in_order(grades: np.ndarray, scores: np.ndarray) -> np.ndarray:
    return np.take_along_axis(grades, np.argsort(-scores, axis=1), axis=1)


def test_each_measure_is_that_of_a_slow_loop() -> None:
    grades, scores = made()
    ranked = in_order(grades, scores)
    for query in range(len(grades)):
        gains = [float(grades[query, row]) for row in sorted(range(150), key=lambda row: -scores[query, row])]
        best = sorted(gains, reverse=True)
        gained, ideal = (sum(list_[r] / math.log2(r + 2) for r in range(10)) for list_ in (gains, best))
        first = next((rank for rank, gain in enumerate(gains, 1) if gain > 0), None)
        hits = [rank for rank, gain in enumerate(gains, 1) if gain > 0]
        assert ndcg(ranked, list(grades))[query] == pytest.approx(gained / ideal, abs=1e-12)
        assert reciprocal_rank(ranked)[query] == (1 / first if first is not None and first <= 10 else 0)
        assert recall(ranked, list(grades))[query] == pytest.approx(sum(rank <= 100 for rank in hits) / len(hits))
        precision = sum(number / rank for number, rank in enumerate(hits, 1)) / len(hits)
        assert average_precision(ranked[query]) == pytest.approx(precision, abs=1e-12)


def test_they_are_those_of_scikit_learn() -> None:
    from sklearn.metrics import average_precision_score, ndcg_score

    grades, scores = made()
    ranked = in_order(grades, scores)
    assert ndcg(ranked, list(grades)).mean() == pytest.approx(ndcg_score(grades, scores, k=10), abs=1e-12)
    twin = [average_precision_score(row > 0, score) for row, score in zip(grades, scores, strict=True)]
    assert [average_precision(row) for row in ranked] == pytest.approx(twin, abs=1e-12)


def test_the_fixed_points() -> None:
    judged = [[2.0, 0.0, 1.0], [1.0]]
    perfect = np.array([[2.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    assert ndcg(perfect, judged).tolist() == [1, 1]
    assert reciprocal_rank(perfect).tolist() == [1, 1]
    assert recall(perfect, judged).tolist() == [1, 1]
    nothing = np.zeros((2, 3))
    assert ndcg(nothing, judged).tolist() == reciprocal_rank(nothing).tolist() == recall(nothing, judged).tolist()
    assert ndcg(nothing, judged).tolist() == [0, 0]
    turned = np.array([[1.0, 2.0, 0.0]])  # the grades count
    assert ndcg(turned, judged[:1])[0] == pytest.approx((1 + 2 / math.log2(3)) / (2 + 1 / math.log2(3)))
    assert reciprocal_rank(np.eye(12)[:, :12])[10:].tolist() == [0, 0]  # beyond rank ten
