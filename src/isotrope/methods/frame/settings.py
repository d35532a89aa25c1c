"""Settings that explain and check themselves: type, range, meaning and default stand with the field.

    temperature: Annotated[float, above(0), "What similarities are divided by before the softmax"] = 0.05

``check`` refuses a value outside its range, ``resolve`` reads values by name from a recipe or a command line, and
``describe`` lists everything for people. A rule over several fields goes into ``rules``; one that needs the batch size
goes into ``check_batch``. The defaults are the paper's.
"""

from __future__ import annotations

import dataclasses
import math
import reprlib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from isotrope.errors import InputError, nearest

SettingsT = TypeVar("SettingsT", bound="Settings")
LARGEST = 10**9  # a number without an upper end of its own
FAR = 1_000  # from here on an upper end is that of a size, not of a share or a choice


@dataclass(frozen=True)
class Range:
    """Finite numbers between two ends, each of which may belong to it or not; none is larger than ``LARGEST``.

    Give sizes (layers, widths, draws) an upper end of their own: a model of a billion layers is not refused, it hangs.
    """

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    def holds(self, value: float) -> bool:
        ended = self.most is not None or self.below is not None
        return (math.isfinite(value) if ended else self.counts(value)) and not (
            (self.least is not None and value < self.least)
            or (self.most is not None and value > self.most)
            or (self.above is not None and value <= self.above)
            or (self.below is not None and value >= self.below)
        )

    @staticmethod
    def counts(value: float) -> bool:
        return math.isfinite(value) and value <= LARGEST

    def complaint(self, value: float) -> str:
        """What must hold, as the end of a sentence that begins with the setting's name."""
        if not math.isfinite(value):
            return "must be a finite number"
        if self.most is None and self.below is None and not self.counts(value):
            return f"must be at most {LARGEST:,}"
        if self.most is not None and self.most >= FAR and self.least is not None:  # an end is named where it is crossed
            return (
                Range(least=self.least).complaint(value) if value < self.least else f"must be {Range(most=self.most)}"
            )
        low, high = self.least if self.above is None else self.above, self.most if self.below is None else self.below
        if low is not None and high is not None:
            outside = [_number(end) for end in (self.above, self.below) if end is not None]
            left_out = f" ({' and '.join(outside)} excluded)" if outside else ""
            return f"must lie between {_number(low)} and {_number(high)}{left_out}"
        if self.least == 0:
            return "must not be negative"
        return f"must be {self}"

    def __str__(self) -> str:
        ends = (("at least", self.least), ("above", self.above), ("at most", self.most), ("below", self.below))
        return " and ".join(f"{word} {_number(end)}" for word, end in ends if end is not None)


def _number(value: float) -> str:
    return f"{int(value):,}" if float(value).is_integer() else f"{value:g}"


def above(limit: float, *, most: float | None = None, below: float | None = None) -> Range:
    return Range(above=limit, most=most, below=below)


def at_least(limit: float, *, most: float | None = None, below: float | None = None) -> Range:
    return Range(least=limit, most=most, below=below)


@dataclass(frozen=True, init=False)
class OneOf:
    """One word of a few."""

    choices: tuple[str, ...]

    def __init__(self, *choices: str) -> None:
        object.__setattr__(self, "choices", choices)

    def __str__(self) -> str:
        return "one of " + ", ".join(self.choices)


# What many methods have, under one name and one range. A field that needs other words adds its own: the last meaning
# of an Annotated counts.
TemperatureSetting = Annotated[float, above(0), "Temperature: similarities are divided by it before the softmax"]
Count = Annotated[int, at_least(1)]
Draws = Annotated[int, at_least(1, most=10_000)]  # done over and over in one update
Layers = Annotated[int, at_least(1, most=1_000)]
Width = Annotated[int, at_least(1, most=65_536)]
Positive = Annotated[float, above(0)]
Weight = Annotated[float, at_least(0)]
OpenShare = Annotated[float, above(0, below=1)]
ShareAboveZero = Annotated[float, above(0, most=1)]
ClosedShare = Annotated[float, at_least(0, most=1)]
DropoutSetting = Annotated[
    float | None, at_least(0, below=1), "Dropout of the backbone while training; none: the model's own"
]


@dataclass(frozen=True)
class Settings:
    """What a paper invented, with the paper's values. Frozen: a run cannot change its own terms."""

    def rules(self) -> None:
        """Raise ``InputError`` where values do not go together, or a word cannot be parsed."""

    def check_batch(self, batch_size: int) -> None:
        """Raise ``InputError`` where the records of an update, over all processes, are too many or too few."""


@dataclass(frozen=True)
class Described:
    """One setting, for people."""

    name: str
    type: str
    default: Any
    range: str
    meaning: str


def check(settings: Settings) -> None:
    """Raise ``InputError`` for the first value outside its range, then for values that do not go together."""
    for name, (_, rules) in _fields(type(settings)).items():
        value = getattr(settings, name)
        for rule in rules if value is not None else ():
            if isinstance(rule, Range) and not rule.holds(value):
                raise InputError(f"{name} {rule.complaint(value)}; {value} was given.")
            if isinstance(rule, OneOf) and value not in rule.choices:
                raise InputError(f"{name} is {rule}; '{value}' was given.")
    settings.rules()


def describe(settings: type[Settings], defaults: Mapping[str, Any] | None = None) -> list[Described]:
    """Every setting with its type, default, range and meaning. ``defaults`` are those that a method changes."""
    found = []
    defined = {field.name: field.default for field in dataclasses.fields(settings)}
    for name, (hint, rules) in _fields(settings).items():
        ranges = [str(rule) for rule in rules if isinstance(rule, Range | OneOf)]
        meanings = [rule for rule in rules if isinstance(rule, str)]
        default = (defaults or {}).get(name, defined[name])
        found.append(Described(name, _plain(hint), default, " and ".join(ranges), meanings[-1] if meanings else ""))
    return found


def resolve(given: Mapping[str, Any], *classes: type[SettingsT]) -> list[SettingsT]:
    """One object of each class from settings by name; a name or a value that fits none is an ``InputError``."""
    given = {name.replace("-", "_"): value for name, value in given.items()}
    known = {field.name: one for one in classes for field in dataclasses.fields(one)}
    for name in given:
        if name not in known:
            raise InputError(f"Unknown setting '{name}'{nearest(name, known)}")
    results = []
    for one in classes:
        fields = _fields(one)
        own = {name: value for name, value in given.items() if known[name] is one}
        results.append(one(**{name: _converted(name, value, fields[name][0]) for name, value in own.items()}))
    return results


def _fields(settings: type[Settings]) -> dict[str, tuple[Any, tuple[Any, ...]]]:
    """Of each field: its plain type, and what ``Annotated`` says of it."""
    hints = typing.get_type_hints(settings, include_extras=True)
    return {field.name: _split(hints[field.name]) for field in dataclasses.fields(settings)}


def _split(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    if typing.get_origin(hint) is Annotated:
        return hint.__origin__, hint.__metadata__
    return hint, ()


def _options(hint: Any) -> tuple[Any, ...]:
    return typing.get_args(hint) if isinstance(hint, types.UnionType) else (hint,)


def _converted(name: str, value: Any, hint: Any) -> Any:
    options = _options(hint)
    if value is None or (isinstance(value, str) and value.lower() in ("none", "null")):
        if type(None) in options:
            return None
        if hint is not str:
            raise InputError(f"{name} needs a value of type {_plain(hint)}.")
    target = next(option for option in options if option is not type(None))
    try:
        if target is bool:
            return _truth(value)
        if isinstance(value, bool | list | tuple | dict | set):
            raise TypeError
        if target is int and float(value) != int(float(value)):
            raise ValueError
        return int(float(value)) if target is int else target(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{name} takes a value of type {_plain(hint)}; {reprlib.repr(value)} was given.") from error


def _truth(value: Any) -> bool:
    lowered = str(value).lower()
    if lowered not in ("true", "false", "yes", "no", "1", "0"):
        raise ValueError(value)
    return lowered in ("true", "yes", "1")


def _plain(hint: Any) -> str:
    names = {int: "whole number", float: "number", str: "word", bool: "yes or no", type(None): "none"}
    return " or ".join(names.get(option, str(option)) for option in _options(hint))
