"""Scored pairs: how cosines lie by gold score, and how much of a similarity is mere likeness of the strings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError, nearest

Floats = npt.NDArray[np.float64]
UNITS = ("words", "characters")
WORD = re.compile(r"\w+|[^\w\s]")
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


def edit_distance(
    first: Sequence[str], second: Sequence[str], unit: str = "words", rows: int = 256
) -> npt.NDArray[np.int64]:
    """Levenshtein's distance of each pair: insertions, deletions and substitutions at cost 1, of words or of
    characters.

    Case is no difference. A word is a run of letters and digits, or one mark; for a script without blanks take
    characters. All pairs of a group go through the table together, a row of it at a time. Within a row d_j = min(c_j,
    d_{j−1} + 1), which is j + min_{i ≤ j} (c_i − i).
    """
    if unit not in UNITS:
        raise InputError(f"Edit distance is not counted in '{unit}'{nearest(unit, UNITS)}")
    numbers: dict[str, int] = {}

    def spell(text: str) -> list[int]:
        return [
            numbers.setdefault(part, len(numbers))
            for part in (text.lower() if unit == "characters" else WORD.findall(text.lower()))
        ]

    spelled = [(spell(a), spell(b)) for a, b in zip(first, second, strict=True)]
    order = sorted(range(len(spelled)), key=lambda pair: max(map(len, spelled[pair])))
    result = np.zeros(len(spelled), dtype=np.int64)
    for start in range(0, len(order), rows):
        group = order[start : start + rows]
        left, right = (_padded([spelled[pair][side] for pair in group]) for side in (0, 1))
        ends = [(len(spelled[pair][0]), len(spelled[pair][1])) for pair in group]
        result[group] = _distances(left, right, np.array(ends, dtype=np.int64))
    return result


def _padded(sequences: list[list[int]]) -> npt.NDArray[np.int32]:
    table = np.full((len(sequences), max(map(len, sequences))), -1, dtype=np.int32)
    for row, sequence in zip(table, sequences, strict=True):
        row[: len(sequence)] = sequence
    return table


def _distances(
    left: npt.NDArray[np.int32], right: npt.NDArray[np.int32], ends: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """A pair's distance stands in row ``ends[:, 0]``, column ``ends[:, 1]``; padding lies behind it."""
    columns = np.arange(right.shape[1] + 1, dtype=np.int32)
    above = np.broadcast_to(columns, (len(left), len(columns))).copy()
    found = np.where(ends[:, 0] == 0, ends[:, 1], 0)
    for number in range(left.shape[1]):
        changed = above[:, :-1] + (left[:, number, None] != right)
        row = np.empty_like(above)
        row[:, 0] = number + 1
        row[:, 1:] = np.minimum(changed, above[:, 1:] + 1)
        above = np.minimum.accumulate(row - columns, axis=1) + columns
        done = np.flatnonzero(ends[:, 0] == number + 1)
        found[done] = above[done, ends[done, 1]]
    return found
