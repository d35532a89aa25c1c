"""Pairs of sentences with people's scores, from a file that is read once."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from isotrope.data.corpus_files import is_number
from isotrope.data.readers import read
from isotrope.data.record_types import Record, record_type_named
from isotrope.errors import InputError

Floats = npt.NDArray[np.float64]
STSB_SPLITS = ("train", "dev", "test")
POSITIVE_ABOVE = 4.0  # gold score from which an STS-B pair counts as a positive pair


class ScoredPairs(NamedTuple):
    """Row i: ``first[i]`` and ``second[i]`` with the score ``gold[i]``; ``subsets[i]`` is the part of the task."""

    first: list[str]
    second: list[str]
    gold: Floats
    subsets: list[str]

    @property
    def texts(self) -> list[str]:
        return [*self.first, *self.second]

    def above(self, score: float) -> list[tuple[str, str]]:
        """The pairs with a higher gold score."""
        return [(self.first[row], self.second[row]) for row in np.flatnonzero(self.gold > score)]


def read_pairs(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> ScoredPairs:
    """The scored pairs of a file; rows without a text or a score are left out."""
    # The subset travels as the type of the score: one more column, which need not be there.
    with_subset = dataclasses.replace(record_type_named("scored-pairs"), types=("subset",))
    rows = [record for record in read(path, with_subset, columns) if all(record.texts) and record.value]
    if len(rows) < 2:
        raise InputError(f"{path}: at least two scored pairs were expected, {len(rows)} found.")
    first, second = ([record.texts[side] for record in rows] for side in (0, 1))
    return ScoredPairs(first, second, np.array([_score(path, row) for row in rows]), [row.type for row in rows])


def read_eval_pairs(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> ScoredPairs:
    """The same of a file that a person chose to judge by: a score that is missing is refused, not left out.

    So are scores that are all equal: a rank correlation with them does not exist.
    """
    rows = read(path, record_type_named("scored-pairs"), columns)
    missing = next((row for row in rows if not row.value), None)
    if missing is not None:
        raise InputError(f"{Path(path)}:{missing.line}: the score is empty; fill it in, or take the row out.")
    pairs = read_pairs(path, columns)
    if np.ptp(pairs.gold) == 0:
        raise InputError(f"{Path(path)}: all scores are {pairs.gold[0]:g}, and equal scores rank nothing.")
    return pairs


def joined(parts: list[ScoredPairs]) -> ScoredPairs:
    """All pairs of several files, one file after another."""
    gold = np.concatenate([part.gold for part in parts]) if parts else np.empty(0)
    return ScoredPairs(
        [text for part in parts for text in part.first],
        [text for part in parts for text in part.second],
        gold,
        [subset for part in parts for subset in part.subsets],
    )


def _score(path: str | os.PathLike[str], record: Record) -> float:
    if not is_number(str(record.value)):
        raise InputError(f"{Path(path)}:{record.line}: the score is '{record.value}', and a number was expected.")
    return float(str(record.value))
