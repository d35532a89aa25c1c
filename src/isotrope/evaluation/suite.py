"""A suite: one way to judge an encoder, under a name and a protocol; and how suites are found.

A class in a file of this folder that inherits from ``Suite`` and has a card is found by ``isotrope.evaluate`` and by
the command line. A comparison judges by those whose ``summary`` it has columns for (comparison/judges.py).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import Field, dataclass, fields
from functools import cache
from typing import Any, ClassVar

import isotrope.evaluation
from isotrope.data.sentence_files import Texts
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError, nearest
from isotrope.evaluation.results import Results
from isotrope.evaluation.task_records import first_numbers
from isotrope.methods.frame.method_registry import carded_in


@dataclass(frozen=True)
class Options:
    """What a caller may ask of a suite. The default of each means that it was not asked for.

    ``model`` is the place that the encoder was loaded from, if it has one: a fact, which no suite refuses.
    """

    data_dir: str | os.PathLike[str] | None = None
    texts: Texts | None = None
    columns: Sequence[str] | None = None
    aggregation: str = "all"
    seeds: tuple[int, ...] = (0,)
    resamples: int = 500
    model: str | os.PathLike[str] | None = None
    test: str | os.PathLike[str] | None = None
    baselines: bool = True
    protocol: str | None = None
    tasks: tuple[str, ...] | None = None
    lang: str | None = None

    @property
    def seed(self) -> int:
        """The first seed, for suites that draw once."""
        return self.seeds[0]

    def asked(self) -> list[str]:
        """The names of the options that differ from their defaults."""
        return [field.name for field in fields(self) if field.name != "model" and self._differs(field)]

    def _differs(self, field: Field[Any]) -> bool:
        value = getattr(self, field.name)
        return value is not None if field.default is None else bool(value != field.default)


@dataclass(frozen=True)
class SuiteCard:
    """What is known of a suite without running it."""

    name: str
    title: str
    protocol: str
    takes: tuple[str, ...]
    alone: tuple[str, ...] = ()  # options that it takes where it is the only suite; else they belong to the others
    has_items: bool = True  # whether ``against`` can compare two encoders by it, item by item


class Suite:
    """A subclass has a card, the options that it takes, ``run``, and ``summary`` for tables with a column a measure."""

    card: ClassVar[SuiteCard]
    # Among suites side by side: 0, it encodes all its texts itself, for others too; 1, it scores for longer than some
    # seconds, which others can encode meanwhile; 2, any other.
    place: ClassVar[int] = 2
    row_titles: ClassVar[Mapping[str, str]] = {}  # by task, how its row in the table begins, where not by its name

    @classmethod
    def check(cls, options: Options) -> None:
        """Refuse what cannot work, before a model is loaded. A subclass adds what it knows of its options and files."""
        for name in options.asked():
            if name not in cls.card.takes:
                others = [suite.card.name for suite in registry().values() if name in suite.card.takes]
                listed = " or ".join(filter(None, (", ".join(others[:-1]), others[-1])))
                raise InputError(f"The {cls.card.name} suite takes no {name}; leave it out, or choose {listed}.")

    def run(self, encoder: Encoder, options: Options) -> Results:
        """Read, score, typeset."""
        raise NotImplementedError

    def summary(self, results: Results) -> dict[str, float]:
        """The few figures that stand for the whole, by name: what a comparison shows of each run."""
        raise NotImplementedError

    def main_scores(self, results: Results) -> dict[str, tuple[str, float]]:
        """By task, the name of its main measure and its value. Default: the first number of the task's entry."""
        return first_numbers(results.scores[self.card.name])

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        """By task, the texts of its test items: what must not stand in the training text. Default: not known."""
        return {}


@cache
def registry() -> dict[str, type[Suite]]:
    return carded_in(isotrope.evaluation, Suite)


def find_suite(name: str) -> type[Suite]:
    """A suite by its name; ``mteb:TASK`` is a task of the mteb package."""
    if name.startswith("mteb:"):
        from isotrope.evaluation.mteb_tasks import task_suite

        return task_suite(name)
    if name not in registry():
        raise InputError(f"Unknown suite '{name}'{nearest(name, registry())}", setting="suite")
    return registry()[name]
