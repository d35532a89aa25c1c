"""Reciprocal rank fusion (Cormack, Clarke, Büttcher 2009): one ranking of several, by ranks alone.

    score(d) = Σ_r 1 / (k + rank_r(d)),   k = 60, ranks from 1; a ranking without d adds nothing

Use it where the scores of rankings do not compare, such as cosines and BM25. A document that both rank tenth beats one
that a single ranking has second. What goes wrong: a ranking that is worse than the other everywhere still has half a
say. ``k`` is the paper's; results hardly hang on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

K = 60


def fuse(rankings: Iterable[Sequence[int]], k: int = K) -> list[tuple[int, float]]:
    """(item, score), the best first. Equal scores keep the order in which the rankings name them."""
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, item in enumerate(ranking, 1):
            scores[item] = scores.get(item, 0.0) + 1 / (k + rank)
    return sorted(scores.items(), key=lambda found: -found[1])
