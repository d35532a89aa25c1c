"""Over many seeds:

median and extremes, the interval of the mean, and how far a method lies from the first, seed by seed.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from isotrope.measures.intervals import student_interval
from isotrope.measures.multiple_tests import holm, student_p

FEWEST = 5  # seeds of the table; of fewer, mean and deviation say all there is to say
LEVEL = 0.05  # a smaller p shows a difference
ENOUGH = 3  # seeds of a verdict on a difference: its interval is wide, and so is what is known


@dataclass(frozen=True)
class Interval:
    """A mean and its 95 % interval by Student's t; the limits are none of one value, or where one is no number."""

    mean: float
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, values: Sequence[float]) -> Interval:
        mean = statistics.fmean(values)
        return cls(mean, *(student_interval(values) or ()))

    def text(self, digits: int, sign: str = "") -> str:
        limits = f" ({self.low:{sign}.{digits}f} … {self.high:{sign}.{digits}f})" if self.low is not None else ""
        return f"{self.mean:{sign}.{digits}f}{limits}"

    def verdict(self, head: str, digits: int, corrected: float, methods: int) -> str:
        """Of a difference: what is known of it at 95 %. ``corrected``: its p among those of so many ``methods``."""
        many = f" with Holm's correction for {methods} methods" if methods > 1 else ""
        if not math.isfinite(self.mean):
            sure = "what a run measured is not a number, so nothing can be said"
        elif self.low is None or self.high is None or self.low <= 0 <= self.high:
            sure = "the seeds do not show a difference"
        elif corrected >= LEVEL:
            sure = f"the interval leaves 0 out, but{many} the seeds do not show a difference (p = {corrected:.3f})"
        else:
            also = f", also{many} (p = {corrected:.3f})" if many else ""
            sure = f"{'higher' if self.low > 0 else 'lower'}, and the interval leaves 0 out{also}"
        return f"{self.text(digits, '+')} {head}: {sure}."


@dataclass(frozen=True)
class Spread:
    """Of one measure of one method.

    ``difference``: from the first method, in pairs of the same seed; none for the first itself.
    """

    measure: str
    name: str
    seeds: int
    median: float
    least: float
    most: float
    mean: Interval
    difference: Interval | None = None

    @classmethod
    def of(
        cls, measure: str, name: str, by_seed: Mapping[int, float], first: Mapping[int, float] | None = None
    ) -> Spread:
        """``by_seed``: what each seed reached; ``first``: what the first method did."""
        values = list(by_seed.values())
        both = [] if first is None else [value - first[seed] for seed, value in by_seed.items() if seed in first]
        difference = Interval.of(both) if both else None
        middle, ends = statistics.median(values), (min(values), max(values))
        return cls(measure, name, len(values), middle, *ends, Interval.of(values), difference)

    def cells(self, head: str, digits: int) -> list[str]:
        middle = f"{self.median:.{digits}f}"
        ends = f"{self.least:.{digits}f} – {self.most:.{digits}f}"
        difference = self.difference.text(digits, "+") if self.difference else ""
        return [head, self.name, str(self.seeds), middle, ends, self.mean.text(digits), difference]


def against_first(by_name: Mapping[str, Mapping[int, float]], head: str, digits: int) -> list[str]:
    """A sentence on each method after the first: how far it lies from it, in pairs of the same seed.

    Of many methods one differs by chance, so p-values are Holm's over all that are held against the first.
    """
    (first, own), *others = by_name.items()
    differences = {name: [v - own[seed] for seed, v in by_seed.items() if seed in own] for name, by_seed in others}
    judged = {name: both for name, both in differences.items() if len(both) >= ENOUGH}
    corrected = holm([student_p(both) for both in judged.values()])
    return [
        f"{name} against {first}, seed by seed: {Interval.of(both).verdict(head, digits, p, len(judged))}"
        for (name, both), p in zip(judged.items(), corrected, strict=True)
    ]
