"""Scored pairs: how cosines lie by gold score, and how much of a similarity is mere likeness of the strings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError, nearest

Floats = npt.NDArray[np.float64]
UNITS = ("words", "characters")
WORD = re.compile(r"\w+|[^\w\s]")
QUANTILES = (5, 25, 50, 75, 95)
GRID = 101


def density(cosine: Floats, gold: Floats) -> list[dict[str, Any]]:
    """Cosines in five bins of the gold score, [0, 1) … [4, 5]: count, mean, quantiles, and a smoothed curve on one grid
    for all bins.

    The curve is a Gaussian kernel density, Scott's bandwidth; it is empty where a bin has fewer than two different
    cosines.
    """
    from scipy import stats

    grid = np.linspace(cosine.min(), cosine.max(), GRID)
    table = []
    for low in range(5):
        part = cosine[(gold >= low) & ((gold < low + 1) | (low == 4))]
        line: dict[str, Any] = {"low": low, "high": low + 1, "count": len(part)}
        line["mean"] = float(part.mean()) if len(part) else None
        line["quantiles"] = {str(q): float(np.percentile(part, q)) for q in QUANTILES} if len(part) else {}
        smooth = len(part) > 1 and float(np.ptp(part)) > 1e-9
        line["curve"] = (
            [[float(x), float(y)] for x, y in zip(grid, stats.gaussian_kde(part)(grid), strict=True)] if smooth else []
        )
        table.append(line)
    return table


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
    """A pair's distance stands in row ``ends[:, 0]``, column ``ends[:, 1]``; padding lies behind and cannot reach it."""
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
