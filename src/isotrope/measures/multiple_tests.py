"""p-values of bootstrap draws, and what is left of them when many are looked at."""

from __future__ import annotations

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
