"""Scores of one retrieval set from a ranking of its documents, and the average of the sets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from isotrope.evaluation.results import ENCODER, nested_sides
from isotrope.evaluation.retrieval_files import RetrievalSet
from isotrope.measures.intervals import percentile_interval
from isotrope.measures.ranking_measures import Floats, ndcg, recall, reciprocal_rank

DEPTH = 100  # documents that are looked at for each query
FIRST = 10
MEASURES = ("ndcg_10", "mrr_10", "recall_10", "recall_100")


Rows = npt.NDArray[np.int64]


class Nearest(NamedTuple):
    """[queries, depth] each, best first: rows of the documents, and their cosines."""

    rows: Rows
    cosines: npt.NDArray[np.float32]


@dataclass(frozen=True)
class RankingScore:
    """× 100; ``low`` and ``high`` belong to nDCG."""

    ndcg_10: float
    mrr_10: float
    recall_10: float
    recall_100: float
    low: float
    high: float


@dataclass(frozen=True)
class SetScore:
    """``baselines``: what TF-IDF, BM25 and random vectors reach on the same queries, by name."""

    encoder: RankingScore
    baselines: dict[str, RankingScore]
    queries: int
    documents: int

    def to_dict(self) -> dict[str, Any]:
        sizes = {"queries": self.queries, "documents": self.documents}
        return {**nested_sides({ENCODER: self.encoder, **self.baselines}), **sizes}


@dataclass(frozen=True)
class Ranked:
    """``values``: each measure, query by query; ``draws``: the mean nDCG of each resample of the queries."""

    values: dict[str, Floats]
    draws: Floats

    def score(self) -> RankingScore:
        low, high = percentile_interval(self.draws).times(100)
        means = {name: 100 * float(values.mean()) for name, values in self.values.items()}
        return RankingScore(**means, low=low, high=high)


def rank(found: RetrievalSet, order: Rows, rng: np.random.Generator, resamples: int) -> Ranked:
    """``order`` [queries, depth]: the rows of the documents, best first."""
    values = measured(order, found.gains)
    drawn = rng.integers(len(order), size=(resamples, len(order)))
    return Ranked(values, values["ndcg_10"][drawn].mean(axis=1))


def measured(order: Rows, gains: Sequence[Mapping[int, float]]) -> dict[str, Floats]:
    """Each measure, query by query, between 0 and 1."""
    ranked = np.array(
        [[wanted.get(row, 0.0) for row in rows] for rows, wanted in zip(order.tolist(), gains, strict=True)]
    )
    judged = [list(wanted.values()) for wanted in gains]
    shares = (recall(ranked, judged, first) for first in (FIRST, DEPTH))
    found = ndcg(ranked, judged, FIRST), reciprocal_rank(ranked, FIRST), *shares
    return dict(zip(MEASURES, found, strict=True))


def averaged(sets: Sequence[Ranked]) -> RankingScore:
    """The plain mean of the sets; queries of different sets are resampled independently."""
    low, high = percentile_interval(np.mean([each.draws for each in sets], axis=0)).times(100)
    means = {name: 100 * float(np.mean([each.values[name].mean() for each in sets])) for name in MEASURES}
    return RankingScore(**means, low=low, high=high)
