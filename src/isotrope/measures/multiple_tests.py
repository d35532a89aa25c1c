"""p-values of bootstrap draws and of means over seeds, and what is left of them when many are looked at."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Any

import numpy.typing as npt


def sign_p(draws: npt.NDArray[Any]) -> float:
    """Two-sided: twice the share of draws on the rarer side of 0; a draw of 0 stands on both.

        p = min(1, 2 (min(#{d ≤ 0}, #{d ≥ 0}) + 1) / (R + 1))

    The one that is added keeps p above 0: R draws cannot show less than about 2 / R.
    """
    rarer = min(int((draws <= 0).sum()), int((draws >= 0).sum()))
    return min(1.0, 2 * (rarer + 1) / (len(draws) + 1))


def student_p(values: Sequence[float]) -> float:
    """Two-sided, that the mean is 0, by Student's t with n − 1 degrees of freedom; 1 where nothing can be said: of one
    value, or where one is no number."""
    if len(values) < 2 or not all(map(math.isfinite, values)):
        return 1.0
    from scipy.stats import t

    mean, error = abs(statistics.fmean(values)), statistics.stdev(values) / math.sqrt(len(values))
    if not error:
        return 0.0 if mean else 1.0
    return 2 * float(t.sf(mean / error, len(values) - 1))


def holm(values: Sequence[float]) -> list[float]:
    """Holm's correction (1979): the k-th smallest of m times m − k + 1, never below the one before it, at most 1.

    The chance of calling any equal pair different stays below the level, whatever the values share.
    """
    corrected = [0.0] * len(values)
    highest = 0.0
    for place, number in enumerate(sorted(range(len(values)), key=lambda number: values[number])):
        highest = max(highest, min(1.0, (len(values) - place) * values[number]))
        corrected[number] = highest
    return corrected
