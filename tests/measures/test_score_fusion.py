"""Fusion by standardised scores: its formula, what leaves it as it is, and the cases where a ranking says nothing."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.measures.score_fusion import SCALED_BY, WEIGHT, Fused, Ranking, fuse

COSINES = {7: 0.9, 3: 0.5, 5: 0.1, 9: -0.3}
WEIGHTS = {3: 8.0, 9: 2.0}


def fused(dense: Ranking, lexical: Ranking) -> list[Fused]:
    """Rows without a cosine in the table have 0.2."""
    return fuse(
        dense,
        lexical,
        lambda rows: [COSINES.get(row, 0.2) for row in rows],
        lambda rows: [WEIGHTS.get(row, 0.0) for row in rows],
    )


def rows_of(found: list[Fused]) -> list[int]:
    return [one.row for one in found]


def test_golden_values_against_a_loop() -> None:
    found = fused([(7, 0.9), (3, 0.5), (5, 0.1)], [(3, 8.0), (9, 2.0)])
    expected = {}
    for row in (7, 3, 5, 9):
        score = 0.0
        for weight, table in ((0.6, COSINES), (0.4, WEIGHTS)):
            values = [table.get(each, 0.0) for each in (7, 3, 5, 9)]
            mean = sum(values) / 4
            deviation = (sum((value - mean) ** 2 for value in values) / 4) ** 0.5
            score += weight * (table.get(row, 0.0) - mean) / deviation
        expected[row] = score
    assert {one.row: one.score for one in found} == pytest.approx(expected)
    assert rows_of(found) == sorted(expected, key=lambda row: -expected[row]) == [3, 7, 5, 9]
    assert WEIGHT == 0.6
    assert {one.row: (one.cosine, one.bm25) for one in found} == {
        7: (0.9, 0.0), 3: (0.5, 8.0), 5: (0.1, 0.0), 9: (-0.3, 2.0)
    }  # fmt: skip


def test_a_row_is_scored_alike_whichever_ranking_found_it() -> None:
    once = fused([(7, 0.9), (3, 0.5), (5, 0.1)], [(3, 8.0), (9, 2.0)])
    twice = fused([(7, 0.9), (3, 0.5), (5, 0.1), (9, -0.3)], [(3, 8.0), (9, 2.0)])
    assert once == twice


def test_where_a_ranking_begins_and_its_unit_change_nothing() -> None:
    """Cosines of an encoder whose vectors are all near each other, and BM25 with a factor before it."""
    rng = np.random.default_rng(0)
    cosines, weights = rng.normal(size=40), rng.random(40)
    first = [one.row for one in fuse(ranking(cosines), ranking(weights), lambda _: [], lambda _: [])]
    near = [one.row for one in fuse(ranking(0.8 + cosines / 50), ranking(2.2 * weights), lambda _: [], lambda _: [])]
    assert first == near


def ranking(scores: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Ranking:
    return [(int(row), float(scores[row])) for row in np.argsort(-scores)]


@pytest.mark.parametrize("alike", [0.0, 0.7])
def test_a_ranking_without_a_say_leaves_the_other_as_it_is(alike: float) -> None:
    """No shared word, or the same score for all up to the last digit."""
    dense = [(4, 0.9), (1, 0.5), (2, -0.1)]
    same = [(row, alike + 1e-9 * row) for row in (2, 4, 1)] if alike else []
    assert rows_of(fused(dense, same)) == [4, 1, 2]
    lexical = [(4, 3.0), (1, 2.0), (2, 1.0)]
    assert rows_of(fused([(2, 0.5), (4, 0.5), (1, 0.5)], lexical)) == [4, 1, 2]


def test_equal_scores_keep_their_order_and_one_row_is_finite() -> None:
    assert [(one.row, one.score) for one in fused([(2, 0.5), (4, 0.5), (1, 0.5)], [])] == [(2, 0), (4, 0), (1, 0)]
    assert [(one.row, one.score) for one in fused([(3, 0.4)], [(3, 8.0)])] == [(3, 0.0)]
    assert fused([], []) == []
    assert rows_of(fused([], [(3, 8.0), (9, 2.0)])) == [3, 9]


def test_longer_rankings_add_rows_and_move_no_score() -> None:
    rng = np.random.default_rng(1)
    cosines, weights = rng.normal(size=400), rng.random(400)

    def at(depth: int) -> list[Fused]:
        both = ranking(cosines)[:depth], ranking(weights)[:depth]
        return fuse(*both, lambda rows: cosines[rows], lambda rows: weights[rows])

    short, long = at(SCALED_BY), at(4 * SCALED_BY)
    scores = {one.row: one.score for one in long}
    assert {one.row: one.score for one in short} == pytest.approx({one.row: scores[one.row] for one in short})
    assert len(short) < len(long) == 400
    assert rows_of(short)[:10] == rows_of(long)[:10]
