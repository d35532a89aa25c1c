"""Labels as numbers: one class a row, or several labels joined by a bar (``sport|music``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError

JOINT = "|"
NOTHING = "∅"  # in a corpus, the value of a row without any label
LARGEST = 10_000  # classes


@dataclass(frozen=True)
class LabelSets:
    """``wanted`` [n]: the class of each row; or [n, labels] of 0 and 1 where a row may have several."""

    names: tuple[str, ...]
    wanted: npt.NDArray[np.int64]

    @property
    def task(self) -> str:
        return "labels" if self.wanted.ndim == 2 else "classes"

    @classmethod
    def of(cls, labels: Sequence[str], multi_label: bool = False) -> LabelSets:
        """Names in alphabetical order. Fewer than two classes, or no label at all, are refused."""
        rows = [_parts(label) for label in labels] if multi_label else [(label,) for label in labels]
        names = sorted({name for row in rows for name in row})
        if len(names) < 2 and not multi_label:
            found = f"every record is labelled '{names[0]}'" if names else "there are none"
            raise InputError(f"A classifier needs at least two classes, and {found}.")
        if not names:
            raise InputError("No text has a label; a classifier needs at least one.")
        if len(names) > LARGEST:
            raise InputError(
                f"There are {len(names):,} different labels, more than {LARGEST:,}; is it the right column? (columns)"
            )
        place = {name: number for number, name in enumerate(names)}
        if not multi_label:
            return cls(tuple(names), np.array([place[label] for label in labels], dtype=np.int64))
        wanted = np.zeros((len(rows), len(names)), dtype=np.int64)
        for number, row in enumerate(rows):
            wanted[number, [place[name] for name in row]] = 1
        return cls(tuple(names), wanted)

    def folds(self, most: int, rng: np.random.Generator, texts: Sequence[str] | None = None) -> npt.NDArray[np.int64]:
        """[n]: the fold that each row is held out in; −1 for a class of one text, which is always trained on.

        Rows of a class are dealt out in turn, so every fold trains on every class. Rows of the same text are held out
        together: one that is trained on knows the others.
        """
        found = np.full(len(self.wanted), -1, dtype=np.int64)
        first = np.arange(len(found)) if texts is None else _first_rows(texts)
        distinct = first == np.arange(len(found))
        if self.wanted.ndim == 2:
            rows = np.flatnonzero(distinct)
            if len(rows) > 1:
                found[rng.permutation(rows)] = np.arange(len(rows)) % min(most, len(rows))
            return found[first]
        turn = 0
        for number in range(len(self.names)):
            rows = np.flatnonzero((self.wanted == number) & distinct)
            if len(rows) > 1:
                found[rng.permutation(rows)] = (turn + np.arange(len(rows))) % min(most, len(rows))
                turn += len(rows)
        found = found[first]
        for number in range(len(self.names)):  # a text of two classes may have taken all rows of one into one fold
            own = self.wanted == number
            if own.any() and np.ptp(found[own]) == 0:
                found[own] = -1
        return found


def _first_rows(texts: Sequence[str]) -> npt.NDArray[np.int64]:
    """[n]: the first row that has the same text."""
    places: dict[str, int] = {}
    return np.array([places.setdefault(text, row) for row, text in enumerate(texts)], dtype=np.int64)


def _parts(label: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in label.split(JOINT) if part.strip() and part.strip() != NOTHING))
