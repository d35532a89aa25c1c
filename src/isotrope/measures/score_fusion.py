"""Fusion by standardised scores: one ranking of two, by how far a row stands above the other candidates of its query.

    score(d) = w · z(cosine) + (1 − w) · z(BM25),   z(s) = (s − mean) / deviation,   w = 0.6

Candidates are the rows of both rankings. A row that only one of them found is scored by the other as well: for most
rows the other score is low, not unknown. Mean and deviation are those of the first hundred of each ranking, so a
longer ranking adds rows and hardly moves the first ones. Neither a constant added to all cosines nor the unit of BM25
changes anything. A ranking whose candidates all score alike, such as BM25 where no word is shared, adds 0.

Use it where both scores are at hand. Against reciprocal ranks, Σ 1/(60 + rank): a rank does not say how clear a win
was, so there a ranking that has nothing to say for a query still has half a say. The weight was chosen on sets that
are not reported (benchmarks/fusion.py). Scores of two queries do not compare.
Source: convex combinations of normalised scores, Bruch, Gai, Ingber 2023; zero mean and unit variance, Montague,
Aslam 2001.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

WEIGHT = 0.6  # of the cosine
SCALED_BY = 100  # rows of each ranking that say what is usual
ALIKE = 1e-6  # scores that differ by less of their size are equal
Scores = Sequence[float] | npt.NDArray[np.floating]
Ranking = Sequence[tuple[int, float]]  # (row, score), the best first
Missing = Callable[[list[int]], Scores]  # the scores of rows that a ranking did not find


class Fused(NamedTuple):
    row: int
    score: float
    cosine: float
    bm25: float


def fuse(dense: Ranking, lexical: Ranking, cosines: Missing, weights: Missing) -> list[Fused]:
    """The rows of both rankings, the best first; equal scores keep the order dense, then lexical."""
    by_vector, by_word = dict(dense), dict(lexical)
    rows = list(dict.fromkeys([*by_vector, *by_word]))
    by_vector.update(_filled([row for row in rows if row not in by_vector], cosines))
    by_word.update(_filled([row for row in rows if row not in by_word], weights))
    usual = {row for ranking in (dense, lexical) for row, _ in ranking[:SCALED_BY]}
    among = np.array([row in usual for row in rows], dtype=np.bool_)
    first, second = (np.array([found[row] for row in rows], dtype=np.float64) for found in (by_vector, by_word))
    scores = WEIGHT * standardised(first, among) + (1 - WEIGHT) * standardised(second, among)
    return [
        Fused(rows[place], float(scores[place]), float(first[place]), float(second[place]))
        for place in np.argsort(-scores, kind="stable")
    ]


def standardised(scores: npt.NDArray[np.float64], among: npt.NDArray[np.bool_]) -> npt.NDArray[np.float64]:
    """Deviations above the mean of ``scores[among]``; zeros where these are all alike."""
    usual = scores[among]
    if not len(usual) or np.ptp(usual) <= ALIKE * np.abs(usual).max():
        return np.zeros_like(scores)
    return np.asarray((scores - usual.mean()) / usual.std())


def _filled(rows: list[int], scores_of: Missing) -> dict[int, float]:
    return dict(zip(rows, map(float, scores_of(rows)), strict=True)) if rows else {}
