"""Levenshtein's distance of many pairs of texts at once: how much of a similarity is mere likeness of the strings?"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError, nearest

UNITS = ("words", "characters")
WORD = re.compile(r"\w+|[^\w\s]")


def edit_distance(
    first: Sequence[str], second: Sequence[str], unit: str = "words", rows: int = 256
) -> npt.NDArray[np.int64]:
    """Levenshtein's distance of each pair: insertions, deletions and substitutions at cost 1, of words or of
    characters.

    Case does not count. A word is a run of letters and digits, or one mark; for a script without blanks take
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
