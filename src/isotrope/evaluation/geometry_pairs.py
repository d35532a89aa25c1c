"""Scored pairs: how cosines lie by gold score, and how much of a similarity is mere likeness of the strings."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from torch.nn.functional import normalize

from isotrope.encoders.encoder import Encoder, Vectors
from isotrope.errors import InputError
from isotrope.evaluation.edit_distance import edit_distance
from isotrope.evaluation.geometry import alignment, check_spread, cloud
from isotrope.evaluation.scored_pairs import POSITIVE_ABOVE, Floats
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures import isotropy
from isotrope.measures.correlation import spearman

QUANTILES = (5, 25, 50, 75, 95)
GRID = 101


@dataclass(frozen=True)
class GoldBin:
    """Cosines of the pairs with a gold score from ``low`` to ``high``; ``curve``: [cosine, density] on one grid."""

    low: int
    high: int
    count: int
    mean: float | None
    quantiles: dict[str, float]
    curve: list[list[float]]

    @property
    def label(self) -> str:
        return f"{self.low}–{self.high}"


@dataclass(frozen=True)
class Lexical:
    """Spearman × 100 of the edit distance with the cosine and with the gold score; none where one side is constant."""

    unit: str
    edit_cosine: float | None
    edit_gold: float | None


@dataclass(frozen=True)
class PairGeometry:
    """Of pairs that people scored from 0 to 5; ``spearman`` is × 100."""

    pairs: int
    positive_pairs: int
    alignment: float
    uniformity: float
    spearman: float | None
    density: list[GoldBin]
    lexical: Lexical


def describe_pairs(
    encoder: Encoder, first: Sequence[str], second: Sequence[str], scores: Sequence[float]
) -> PairGeometry:
    """What the space does with pairs that people scored from 0 to 5."""
    texts = list(dict.fromkeys([*first, *second]))
    vectors = TextVectors.encoded(encoder, texts).of(texts) if texts else np.empty((0, 1), np.float32)
    return describe_scored(vectors, texts, first, second, scores)


def describe_scored(
    vectors: Vectors,
    texts: Sequence[str],
    first: Sequence[str],
    second: Sequence[str],
    scores: Sequence[float],
    unit: str = "words",
) -> PairGeometry:
    """As ``describe_pairs``, where row i of ``vectors`` is the vector of ``texts[i]``."""
    gold = np.asarray(scores, dtype=np.float64)
    _check_pairs(first, second, gold)
    everything = cloud(TextVectors(texts, vectors).of([*first, *second]), 2)
    check_spread(everything)
    a, b = normalize(everything, dim=-1).split(len(gold))
    cosine = (a * b).sum(dim=1).double().numpy()
    edits = edit_distance(first, second, unit)
    positive = gold > POSITIVE_ABOVE
    return PairGeometry(
        pairs=len(gold),
        positive_pairs=int(positive.sum()),
        alignment=alignment(a[positive], b[positive]),
        uniformity=float(isotropy.uniformity(everything)),
        spearman=_percent(spearman(cosine, gold)),
        density=density(cosine, gold),
        lexical=Lexical(unit, _percent(spearman(edits, cosine)), _percent(spearman(edits, gold))),
    )


def density(cosine: Floats, gold: Floats) -> list[GoldBin]:
    """Cosines in five bins of the gold score, [0, 1) … [4, 5]: count, mean, quantiles, and a smoothed curve on one grid
    for all bins.

    The curve is a Gaussian kernel density, Scott's bandwidth; it is empty where a bin has fewer than two different
    cosines.
    """
    grid = np.linspace(cosine.min(), cosine.max(), GRID)
    parts = [cosine[(gold >= low) & ((gold < low + 1) | (low == 4))] for low in range(5)]
    return [
        GoldBin(
            low,
            low + 1,
            len(part),
            float(part.mean()) if len(part) else None,
            {str(q): float(np.percentile(part, q)) for q in QUANTILES} if len(part) else {},
            _curve(part, grid),
        )
        for low, part in enumerate(parts)
    ]


def _curve(part: Floats, grid: Floats) -> list[list[float]]:
    from scipy import stats

    if len(part) < 2 or float(np.ptp(part)) <= 1e-9:
        return []
    return [[float(x), float(y)] for x, y in zip(grid, stats.gaussian_kde(part)(grid), strict=True)]


def _percent(correlation: float) -> float | None:
    return None if math.isnan(correlation) else 100 * correlation


def _check_pairs(first: Sequence[str], second: Sequence[str], gold: Floats) -> None:
    if not len(first) == len(second) == len(gold):
        raise InputError(f"Pairs and scores differ in number: {len(first)}, {len(second)} and {len(gold)}.")
    if len(gold) < 2:
        raise InputError(f"At least two scored pairs were expected; {len(gold)} given.")
    if not ((gold >= 0) & (gold <= 5)).all():
        raise InputError("Gold scores from 0 to 5 were expected; scale them to that range.")
    if not (gold > POSITIVE_ABOVE).any():
        raise InputError(
            "No pair has a gold score above 4, so there are no positive pairs to align; scores run from 0 to 5."
        )
