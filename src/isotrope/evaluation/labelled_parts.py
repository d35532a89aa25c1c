"""Labelled text in the parts that a classifier needs: to learn from, to choose its penalty by, to be judged by.

a file with a column split     train, dev (may be missing) and test as its rows say
a file and a test file         as given
a file alone                   a fifth of each class is held out for the test, drawn by the seed
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isotrope.data.readers import read
from isotrope.data.record_types import Record, record_type_named
from isotrope.errors import InputError
from isotrope.evaluation.folds import FOLDS, stratified
from isotrope.evaluation.linear import Labelled, LabelledSource, read_labelled

SPLITS = {
    **dict.fromkeys(("train", "training", "tr"), "train"),
    **dict.fromkeys(("dev", "valid", "validation", "val", "va"), "dev"),
    **dict.fromkeys(("test", "testing", "te"), "test"),
}
HELD_OUT = 2  # of ten folds


@dataclass(frozen=True)
class Parts:
    """``made``: how the parts came about, in words. ``dev`` is None where the text has no such part."""

    train: Labelled
    test: Labelled
    made: str
    dev: Labelled | None = None

    @property
    def shared(self) -> int:
        """The test texts that stand in the training part too: they judge memory."""
        return len(set(self.test.texts[0]) & set(self.train.texts[0]))


def read_parts(
    source: LabelledSource, test: LabelledSource | None = None, columns: Sequence[str] | None = None, seed: int = 0
) -> Parts:
    """The parts of a file with splits, of two files, or of one file that is cut here."""
    splits = _by_split(source, columns)
    if splits and test is not None:
        raise InputError(f"{source}: the file has a column split, and a test file was given too; leave test out.")
    if splits:
        return Parts(splits["train"], splits["test"], "as the column split says", splits.get("dev"))
    whole = read_labelled(source, columns)
    if test is not None:
        return Parts(whole, read_labelled(test, columns), "two files")
    learn, judge = cut_parts(whole, seed)
    return Parts(learn, judge, f"a fifth of each class held out, seed {seed}")


def drawn_dev(train: Labelled, seed: int) -> tuple[Labelled, Labelled]:
    """A tenth of each class to choose by, and the rest to learn from meanwhile."""
    folds = stratified(np.unique(train.labels, return_inverse=True)[1], np.random.default_rng([seed, 1]))
    return _rows(train, np.flatnonzero(folds > 0)), _rows(train, np.flatnonzero(folds == 0))


def _by_split(source: LabelledSource, columns: Sequence[str] | None) -> dict[str, Labelled]:
    """Empty where the text says nothing of splits."""
    if not isinstance(source, str | os.PathLike):
        return {}
    # The split travels as the type of the label: one more column, which need not be there.
    with_split = dataclasses.replace(record_type_named("labelled"), types=("split",))
    parts: dict[str, list[tuple[str, str]]] = {}
    full = [record for record in read(source, with_split, columns) if all(record.texts)]
    for record in full if any(record.type for record in full) else ():
        part = _split(source, record)
        if not record.value:
            raise InputError(f"{source}:{record.line}: the label is empty; fill it in, or take the row out.")
        parts.setdefault(part, []).append((record.texts[0], str(record.value)))
    missing = [name for name in ("train", "test") if parts and name not in parts]
    if missing:
        raise InputError(f"{source}: no row of split {missing[0]}; splits found: {', '.join(sorted(parts))}.")
    return {name: read_labelled(rows) for name, rows in parts.items()}


def _split(source: LabelledSource, record: Record) -> str:
    name = SPLITS.get(record.type.lower())
    if not record.type:
        raise InputError(f"{source}:{record.line}: the split is empty; write train, dev or test, or take the row out.")
    if name is None:
        raise InputError(f"{source}:{record.line}: unknown split '{record.type}'; train, dev and test are known.")
    return name


def cut_parts(whole: Labelled, seed: int) -> tuple[Labelled, Labelled]:
    """Every class keeps a text to learn from."""
    classes = np.unique(whole.labels, return_inverse=True)[1]
    if len(classes) < FOLDS:
        raise InputError(f"At least {FOLDS} labelled records are needed to hold some out; {len(classes)} were found.")
    held = stratified(classes, np.random.default_rng(seed)) < HELD_OUT
    for one in range(classes.max() + 1):
        rows = np.flatnonzero(classes == one)
        if held[rows].all():
            held[rows[0]] = False
    if not held.any():
        raise InputError(
            f"Nothing can be held out to judge by: {len(classes)} records have {classes.max() + 1} classes. Bring more "
            "texts of a class, or give test."
        )
    return _rows(whole, np.flatnonzero(~held)), _rows(whole, np.flatnonzero(held))


def _rows(part: Labelled, rows: Sequence[int] | np.ndarray) -> Labelled:
    return Labelled(tuple([side[row] for row in rows] for side in part.texts), [part.labels[row] for row in rows])
