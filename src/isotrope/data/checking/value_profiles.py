"""What the records carry besides their texts: the balance of classes, the spread of scores."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

SHOWN = 10  # classes, and bins of the histogram


@dataclass(frozen=True)
class ClassBalance:
    """``largest`` are the ten largest classes; ``single``: classes of one record, which has no positive.

    ``smallest`` is the number of records of the smallest class.
    """

    classes: int
    largest: dict[str, int]
    smallest: int
    single: int

    @property
    def largest_size(self) -> int:
        return next(iter(self.largest.values()))


@dataclass(frozen=True)
class ScoreSpread:
    """``histogram``: records in ten bins of equal width from the lowest to the highest score, by the lower end."""

    lowest: float
    highest: float
    mean: float
    different: int
    histogram: dict[str, int]


def class_balance(values: Counter[str]) -> ClassBalance:
    sizes = list(values.values())
    return ClassBalance(len(values), dict(values.most_common(SHOWN)), min(sizes), sizes.count(1))


def score_spread(values: Counter[str]) -> ScoreSpread:
    scores = np.array([float(value) for value in values])
    counts = np.array(list(values.values()))
    bins, ends = np.histogram(scores, bins=SHOWN, weights=counts)
    return ScoreSpread(
        float(scores.min()),
        float(scores.max()),
        float(np.average(scores, weights=counts)),
        len(np.unique(scores)),
        {f"{end:.4g}": int(count) for end, count in zip(ends[:-1].tolist(), bins.tolist(), strict=True)},
    )
