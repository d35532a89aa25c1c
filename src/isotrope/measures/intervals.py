"""95 % intervals: of bootstrap draws, of shares, and of means over seeds.

    what was observed                              interval
    draws of a bootstrap                           percentile_interval: the middle 95 % of the draws
    a share of n independent trials                binomial_interval: quantiles of the binomial distribution, no draws
    the same, where a formula on paper is wanted   normal_interval: share ± 1.96 standard errors, cut to [0, 1]
    a share of trials that come in groups          grouped_interval: the same, groups are independent and trials are not
    the mean of several such shares                mean_share_interval: variances of independent shares add up
    a mean over few values, such as seeds          student_interval: mean ± t standard errors

An interval over test pairs or texts says how far the score would move with other test data. It says nothing of other
training seeds, which often move it more: that is ``student_interval`` over runs.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

LEVELS = (0.025, 0.975)
NORMAL = 1.96  # standard errors on each side


class Interval(NamedTuple):
    low: float
    high: float

    def times(self, factor: float) -> Interval:
        return Interval(factor * self.low, factor * self.high)

    def __str__(self) -> str:
        return f"{self.low:.1f} – {self.high:.1f}"


def percentile_interval(draws: npt.NDArray[Any]) -> Interval:
    """The limits that 95 % of the draws lie between."""
    low, high = np.quantile(draws, LEVELS)
    return Interval(float(low), float(high))


def binomial_interval(share: float, count: int) -> Interval:
    """The middle 95 % of the binomial distribution, as shares. Nothing is drawn: a percentile bootstrap of the trials
    tends to it as its draws grow in number.
    """
    from scipy import stats

    low, high = stats.binom.ppf(LEVELS, count, share) / count
    return Interval(float(low), float(high))


def normal_interval(share: float, count: int) -> Interval:
    """share ± 1.96 √(share (1 − share) / n), within [0, 1]. Of a share of 0 or 1 it has no width: count more trials."""
    half = NORMAL * float(np.sqrt(share * (1 - share) / count))
    return Interval(max(share - half, 0.0), min(share + half, 1.0))


def grouped_interval(values: npt.NDArray[Any], groups: npt.NDArray[np.int64]) -> Interval:
    """x̄ ± 1.96 √(Σ_g (Σ_{i ∈ g} x_i − x̄)²) / n, within [0, 1]. With a trial a group it is ``normal_interval``; copies
    of a trial make it no narrower."""
    mean = float(np.mean(values))
    sums = np.bincount(np.unique(groups, return_inverse=True)[1], weights=np.asarray(values, dtype=np.float64) - mean)
    half = NORMAL * float(np.sqrt((sums**2).sum())) / len(values)
    return Interval(max(mean - half, 0.0), min(mean + half, 1.0))


def mean_share_interval(percents: Sequence[float], counts: Sequence[int]) -> Interval:
    """Of the mean of independent shares, in per cent: mean ± 1.96 √(Σ p_i (100 − p_i) / n_i) / m, within [0, 100]."""
    mean = float(np.mean(percents))
    variance = sum(percent * (100 - percent) / count for percent, count in zip(percents, counts, strict=True))
    half = NORMAL * float(np.sqrt(variance)) / len(percents)
    return Interval(max(mean - half, 0.0), min(mean + half, 100.0))


def student_interval(values: Sequence[float]) -> Interval | None:
    """Of the mean, by Student's t with n − 1 degrees of freedom; none of one value, or where one is no number."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return None
    from scipy.stats import t

    mean = statistics.fmean(values)
    half = float(t.ppf(LEVELS[1], len(values) - 1)) * statistics.stdev(values) / math.sqrt(len(values))
    return Interval(mean - half, mean + half)
