"""What is predicted of a labelled record: the number of its class, or its standard score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus
from isotrope.data.corpus_files import is_number
from isotrope.errors import InputError


@dataclass(frozen=True)
class Classes:
    """Classes by name: a test file may number its classes in another way."""

    names: tuple[str, ...]

    @classmethod
    def of(cls, corpus: Corpus) -> Classes:
        names, what = corpus.names, "pair" if len(corpus.record_type.fields) > 1 else "record"
        if len(names) < 2:
            raise InputError(f"Every {what} is labelled '{names[0]}'; classification needs at least two labels.")
        scored = next((name for name in names if is_fraction(name)), None)
        if scored is not None:
            raise InputError(f"The labels look like scores ('{scored}'); say form regression, or give whole classes.")
        return cls(tuple(names))

    def check(self, test: Corpus, where: str) -> None:
        strange = next((name for name in test.names if name not in self.names), None)
        if strange is not None:
            known = ", ".join(self.names[:10])
            raise InputError(f"{where}: the class '{strange}' is not among those of the training data ({known}).")

    def __call__(self, names: list[str]) -> npt.NDArray[Any]:
        return np.array([self.names.index(name) for name in names])


@dataclass(frozen=True)
class Scores:
    """(score − mean) / deviation, both of the rows that are trained on: predicting the mean has a squared error of 1.

    Before the rows are chosen they are those of the whole corpus.
    """

    mean: float
    deviation: float

    @classmethod
    def of(cls, corpus: Corpus, rows: Rows | None = None) -> Scores:
        wrong = next((name for name in corpus.names if not is_number(name)), None)
        if wrong is not None:
            raise InputError(f"Regression needs numbers, and one label is '{wrong}'; say form classification.")
        scores = np.array([float(name) for name in corpus.names])[corpus.numbers(corpus.record_type.value or "")]
        scores = scores if rows is None else scores[rows]
        if not scores.std() > 0:
            raise InputError(f"Every record has the same score, {corpus.names[0]}; there is nothing to learn.")
        return cls(float(scores.mean()), float(scores.std()))

    def check(self, test: Corpus, where: str) -> None:
        wrong = next((name for name in test.names if not is_number(name)), None)
        if wrong is not None:
            raise InputError(f"{where}: the score '{wrong}' is not a number.")

    def __call__(self, names: list[str]) -> npt.NDArray[Any]:
        return (np.array([float(name) for name in names]) - self.mean) / self.deviation


def is_fraction(name: str) -> bool:
    return is_number(name) and not float(name).is_integer()
