"""Scores of the STS tasks from the unit vectors of their texts: correlations, bootstrap intervals, STS-B's geometry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from isotrope.evaluation.geometry import alignment, effective_rank, uniformity
from isotrope.evaluation.scored_pairs import POSITIVE_ABOVE, Floats, ScoredPairs
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.correlation import pearson, resampled_spearman, spearman
from isotrope.measures.intervals import percentile_interval
from isotrope.progress import bar

YEARS = ("STS12", "STS13", "STS14", "STS15", "STS16")
CONSTANT = 1e-6  # range of the cosines under which every text has the same vector
MEASURES = {"spearman": spearman, "pearson": pearson}


@dataclass(frozen=True)
class Benchmark:
    """``tasks``: the pairs of each; ``stsb``: the splits of STS-B that are there, the test first."""

    tasks: dict[str, ScoredPairs]
    stsb: list[ScoredPairs]

    def texts(self) -> set[str]:
        return {text for part in (*self.tasks.values(), *self.stsb) for text in part.texts}


@dataclass(frozen=True)
class TaskScore:
    """× 100; ``low`` and ``high`` belong to Spearman."""

    spearman: float
    pearson: float
    low: float
    high: float
    pairs: int


@dataclass(frozen=True)
class AverageScore:
    """The mean of the seven tasks."""

    spearman: float
    pearson: float
    low: float
    high: float


@dataclass(frozen=True)
class STSBGeometry:
    alignment: float
    uniformity: float
    effective_rank: float
    positive_pairs: int
    sentences: int


@dataclass(frozen=True)
class STSScores:
    tasks: dict[str, TaskScore]
    average: AverageScore
    geometry: STSBGeometry

    def to_dict(self) -> dict[str, Any]:
        tasks = {task: asdict(score) for task, score in self.tasks.items()}
        return {**tasks, "average": asdict(self.average), "geometry": asdict(self.geometry)}


def score_tasks(
    benchmark: Benchmark, vectors: TextVectors, aggregation: str, rng: np.random.Generator, resamples: int
) -> STSScores:
    """Scores of unit vectors. Pairs of different tasks are resampled independently, so the average errs least."""
    scores, draws = {}, []
    with bar("scoring", len(benchmark.tasks)) as advance:
        for task, pairs in benchmark.tasks.items():
            subsets = pairs.subsets if task in YEARS else [""] * len(pairs.gold)  # STS-B and SICK-R are one set each
            cosine = task_cosines(vectors, pairs)
            draws.append(bootstrap(cosine, pairs.gold, subsets, aggregation, rng, resamples))
            interval = percentile_interval(draws[-1]).times(100)
            rank, line = (100 * correlate(name, cosine, pairs.gold, subsets, aggregation) for name in MEASURES)
            scores[task] = TaskScore(rank, line, interval.low, interval.high, len(pairs.gold))
            advance(1, task)
    return STSScores(scores, _average(list(scores.values()), draws), stsb_geometry(benchmark.stsb, vectors))


def stsb_geometry(parts: Sequence[ScoredPairs], vectors: TextVectors) -> STSBGeometry:
    """Alignment of the positive pairs, uniformity and effective rank of all sentences, repeats included."""
    positive = [pair for part in parts for pair in part.above(POSITIVE_ABOVE)]
    first, second = ([pair[side] for pair in positive] for side in (0, 1))
    cloud = _wide(vectors, [text for part in parts for text in part.texts])
    return STSBGeometry(
        alignment(_wide(vectors, first), _wide(vectors, second)),
        uniformity(cloud),
        effective_rank(cloud),
        len(positive),
        len(cloud),
    )


def correlate(measure: str, predicted: Floats, gold: Floats, subsets: Sequence[str], aggregation: str) -> float:
    """The correlation over all pairs, or its (weighted) mean over subsets; 0 where every cosine is the same."""

    def function(x: Floats, y: Floats) -> float:
        return float(np.nan_to_num(MEASURES[measure](x, y)))

    if aggregation == "all":
        return function(predicted, gold)
    names = np.asarray(subsets)
    parts = [names == name for name in dict.fromkeys(subsets)]
    values = [function(predicted[part], gold[part]) for part in parts]
    return float(np.average(values, weights=None if aggregation == "mean" else [part.sum() for part in parts]))


def bootstrap(
    predicted: Floats, gold: Floats, subsets: Sequence[str], aggregation: str, rng: np.random.Generator, resamples: int
) -> Floats:
    """[resamples]: Spearman over pairs drawn with replacement, subset by subset where these are averaged."""
    names = np.asarray(subsets if aggregation != "all" else [""] * len(gold))
    parts = [np.flatnonzero(names == name) for name in dict.fromkeys(names.tolist())]
    draws = [resampled_spearman(predicted[part], gold[part], rng, resamples) for part in parts]
    weights = [len(part) for part in parts] if aggregation == "wmean" else None
    return np.asarray(np.average(draws, axis=0, weights=weights))


def _average(scores: Sequence[TaskScore], draws: Sequence[Floats]) -> AverageScore:
    low, high = percentile_interval(np.mean(draws, axis=0)).times(100)
    rank, line = (float(np.mean([getattr(score, name) for score in scores])) for name in MEASURES)
    return AverageScore(rank, line, low, high)


def task_cosines(vectors: TextVectors, pairs: ScoredPairs) -> Floats:
    """[pairs]: the cosine of the two sides of each, of unit vectors. What differs by rounding alone is alike."""
    cosines = np.asarray((_wide(vectors, pairs.first) * _wide(vectors, pairs.second)).sum(axis=1))
    return np.full_like(cosines, cosines[0]) if np.ptp(cosines) < CONSTANT else cosines


def _wide(vectors: TextVectors, texts: Sequence[str]) -> Floats:
    return vectors.of(texts).astype(np.float64)
