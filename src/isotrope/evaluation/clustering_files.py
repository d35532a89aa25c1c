"""Labelled texts to be clustered: every file of the folder ``clustering``, or one of your own.

A set with more texts than ``SAMPLE`` is sampled without replacement by the seed 0 whatever the seed of the suite is, so
that all encoders and all seeds see the same texts.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isotrope.data.sentence_files import Texts
from isotrope.errors import InputError
from isotrope.evaluation.benchmark_files import find_task
from isotrope.evaluation.linear import read_labelled
from isotrope.evaluation.retrieval_files import names_before

FOLDER = "clustering"
SAMPLE = 2000  # texts of a set


@dataclass(frozen=True, eq=False)
class LabelledSet:
    """``classes[i]``: the number of the class of ``texts[i]``, in alphabetical order of their names."""

    name: str
    texts: list[str]
    classes: npt.NDArray[np.int64]
    whole: int  # texts before sampling

    @property
    def clusters(self) -> int:
        return int(self.classes.max()) + 1


def find_labelled(folder: Path) -> dict[str, Path]:
    """By name, the files of ``folder``/clustering."""
    place = folder / FOLDER
    names = names_before(place, "") if place.is_dir() else []
    if not names:
        raise InputError(f"{place}: nothing to cluster; files such as NAME.tsv with label and sentence are expected.")
    return {name: find_task(place, name) for name in names}


def read_file(name: str, file: Path, columns: tuple[str, ...] | None = None) -> LabelledSet:
    """A file that was not changed is read once."""
    state = file.stat()
    return _read(name, file, columns, (state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=64)
def _read(name: str, file: Path, columns: tuple[str, ...] | None, state: tuple[int, int]) -> LabelledSet:
    return labelled_set(name, file, columns)


def labelled_set(name: str, source: Texts, columns: tuple[str, ...] | None = None) -> LabelledSet:
    """The texts of a file, or a list of (text, label), sampled where they are many."""
    (texts,), labels = read_labelled(source, columns)  # type: ignore[arg-type]
    where = source if isinstance(source, str | os.PathLike) else "the given list"
    kept = np.arange(len(texts))
    if len(texts) > SAMPLE:
        kept = np.sort(np.random.default_rng(0).choice(len(texts), SAMPLE, replace=False))
    names, classes = np.unique([labels[row] for row in kept], return_inverse=True)
    if len(names) < 2:
        raise InputError(f"{where}: every text is labelled '{names[0]}'; at least two classes are needed.")
    if len(names) == len(kept):
        raise InputError(f"{where}: every text has a class of its own; there is nothing to cluster.")
    return LabelledSet(name, [texts[row] for row in kept], classes.astype(np.int64).ravel(), len(texts))
