"""How well a ranking puts what is relevant first: nDCG, reciprocal rank, recall and average precision.

    DCG@k = Σ_{r ≤ k} g_r / log₂(r + 1)        nDCG@k = DCG@k / DCG@k of the best possible ranking
    RR@k  = 1 / rank of the first relevant item, 0 beyond k
    recall@k = relevant items among the first k / all relevant items
    AP    = mean over the relevant items of (relevant items up to its rank / its rank)

A gain g is the grade of an item as it was judged, 0 where nobody judged it; an item is relevant with a gain above 0.
Gains are linear, as in trec_eval and BEIR; some papers take 2^g − 1 instead, which weighs the best grade more. nDCG
sees grades and the whole list, RR only the first hit, recall only whether a second stage could still find the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def ndcg(ranked: Floats, judged: Sequence[Sequence[float]], first: int = 10) -> Floats:
    """[queries]: nDCG among the ``first`` ranks.

    ``ranked`` [queries, depth]: the gain of the item at each rank; ``judged``: all gains of each query, in any order,
    at least one of them above 0.
    """
    best = np.zeros((len(ranked), first))
    for row, gains in zip(best, judged, strict=True):
        top = sorted(gains, reverse=True)[:first]
        row[: len(top)] = top
    return _dcg(ranked[:, :first]) / _dcg(best)


def reciprocal_rank(ranked: Floats, first: int = 10) -> Floats:
    """[queries]: 1 / rank of the first gain above 0; 0 where there is none among the ``first`` ranks."""
    hits = ranked[:, :first] > 0
    return np.where(hits.any(axis=1), 1 / (hits.argmax(axis=1) + 1), 0.0)


def recall(ranked: Floats, judged: Sequence[Sequence[float]], first: int = 100) -> Floats:
    """[queries]: the share of the relevant items that stand among the ``first`` ranks."""
    relevant = np.array([sum(gain > 0 for gain in gains) for gains in judged])
    return np.asarray((ranked[:, :first] > 0).sum(axis=1) / relevant)


def average_precision(ranked: npt.NDArray[Any]) -> float:
    """Of one query whose whole list is ranked: ``ranked`` are its gains, best score first."""
    hits = np.asarray(ranked) > 0
    precision = hits.cumsum() / np.arange(1, len(hits) + 1)
    return float(precision[hits].mean())


def _dcg(gains: Floats) -> Floats:
    return np.asarray(gains @ (1 / np.log2(np.arange(2, gains.shape[1] + 2))))
