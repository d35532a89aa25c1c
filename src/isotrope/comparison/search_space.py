"""Where a search looks: a range or a few words for each setting, and the values drawn from it.

1e-5:1e-3:log    between two numbers, every factor as likely as any other
0.01:0.1         between two numbers
adamw|muon       one of some words
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isotrope.errors import InputError

Limits = str | Sequence[Any]


@dataclass(frozen=True)
class Dimension:
    """One setting and its values. ``whole``: only whole numbers; ``choices``: only these words, and no range."""

    name: str
    low: float = 0.0
    high: float = 0.0
    log: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()

    def at(self, share: float) -> Any:
        """The value that lies this far into the range, 0 ≤ share < 1."""
        if self.choices:
            return self.choices[int(share * len(self.choices))]
        if self.whole and not self.log:
            return int(self.low + math.floor(share * (self.high - self.low + 1)))
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        value = low + share * (high - low)
        return self.rounded(math.exp(value) if self.log else value)

    def rounded(self, value: Any) -> Any:
        """A value that people can type: three digits, inside the range."""
        if self.choices:
            return value
        if self.whole:
            return int(min(max(round(value), self.low), self.high))
        return min(max(float(f"{value:.3g}"), self.low), self.high)

    def found(self, value: Any) -> Any:
        """The value as the search knows it, None where it lies outside."""
        if self.choices:
            return next((word for word in self.choices if word.lower() == str(value).lower()), None)
        return value if isinstance(value, int | float) and self.low <= value <= self.high else None

    def __str__(self) -> str:
        if self.choices:
            return f"{self.name} {' or '.join(self.choices)}"
        return f"{self.name} {self.low:g} to {self.high:g}{' (log)' if self.log else ''}"


def parse_space(given: Mapping[str, Limits]) -> tuple[Dimension, ...]:
    """The dimensions, or what is wrong with them."""
    if not given:
        raise InputError("search needs a setting and its range, such as temperature=0.01:0.1.", "search")
    return tuple(_dimension(name.replace("-", "_"), limits) for name, limits in given.items())


def draw(dimensions: Sequence[Dimension], seed: int, number: int) -> dict[str, Any]:
    """Random values for one trial; they depend on the seed, the trial's number and the setting's name alone.

    So all methods try the same values of a setting that they share, and a search that was stopped goes on as it would
    have gone.
    """
    return {
        one.name: one.at(np.random.default_rng((seed, number, zlib.crc32(one.name.encode()))).random())
        for one in dimensions
    }


def _dimension(name: str, limits: Limits) -> Dimension:
    words = tuple(word for word in limits.split("|") if word) if isinstance(limits, str) and "|" in limits else ()
    if words:
        return Dimension(name, choices=words)
    parts = limits.split(":") if isinstance(limits, str) else list(limits)
    try:
        low, high = float(parts[0]), float(parts[1])
    except (IndexError, TypeError, ValueError):
        raise InputError(
            f"search takes LOW:HIGH, LOW:HIGH:log or words joined by | for {name}; '{limits}' was given.", "search"
        ) from None
    if len(parts) > 3 or (len(parts) == 3 and parts[2] != "log"):
        raise InputError(f"search takes LOW:HIGH or LOW:HIGH:log for {name}; '{limits}' was given.", "search")
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(
            f"The range of {name} must run from a number to a higher one; {low:g} to {high:g} was given.", "search"
        )
    if len(parts) == 3 and low <= 0:
        raise InputError(f"The logarithm of {name} needs a range above 0; {low:g} to {high:g} was given.", "search")
    return Dimension(name, low, high, log=len(parts) == 3)
