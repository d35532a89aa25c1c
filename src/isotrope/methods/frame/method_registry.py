"""Find the methods: every ``Method`` with a name in a module of this folder."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import ClassVar, Protocol, TypeVar

import isotrope.methods
from isotrope.errors import InputError, nearest
from isotrope.methods.frame.method import Card, Method


class HasName(Protocol):
    name: ClassVar[str]


Named = TypeVar("Named", bound=HasName)


@cache
def registry() -> dict[str, type[Method]]:
    return named_in(isotrope.methods, Method)


def named_in(folder: ModuleType, base: type[Named]) -> dict[str, type[Named]]:
    """Every class with a name that comes from ``base`` and stands in a module of the folder, by name."""
    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{module.name}")
    found: dict[str, type[Named]] = {}
    waiting = base.__subclasses__()
    while waiting:
        kind = waiting.pop()
        waiting.extend(kind.__subclasses__())
        if kind.name and kind.__module__.startswith(f"{folder.__name__}."):
            found[kind.name] = kind
    return dict(sorted(found.items()))


def find(name: str) -> type[Method]:
    if name in registry():
        return registry()[name]
    later = {card.name: card.kind for card in _later_cards()}
    if name not in later:
        raise InputError(f"No method is called '{name}'{nearest(name, registry())}")
    if later[name] == "space":
        raise InputError(f"'{name}' is fitted, not trained: isotrope fit-space {name} MODEL TEXT --output DIR.")
    raise InputError(f"'{name}' goes beside a method: isotrope train METHOD DATA --child-tuning F, or D.")


def cards() -> list[Card]:
    """Of the methods here, of the spaces, and of what changes the optimiser's step."""
    return [*(method.card() for method in registry().values()), *_later_cards()]


def _later_cards() -> list[Card]:
    """What rooms after this one add to the list. They are asked by name: this room does not depend on them."""
    spaces, beside = (
        importlib.import_module(f"isotrope.{name}") for name in ("spaces.space_registry", "training.tactics.child_tuning")
    )
    return [*spaces.cards(), beside.CARD]
