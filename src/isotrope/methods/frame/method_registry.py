"""Find the methods: every class with a card of its own in a file of this folder."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any, TypeVar

from isotrope.errors import InputError, nearest
from isotrope.methods.frame.auxiliary import Auxiliary
from isotrope.methods.frame.method import Method

ClassT = TypeVar("ClassT")


@cache
def registry() -> dict[str, type[Method[Any]]]:
    return carded_in(importlib.import_module("isotrope.methods"), Method)


def carded_in(folder: ModuleType, base: type[ClassT]) -> dict[str, type[ClassT]]:
    """Every class with a card that comes from ``base`` and stands in a file of the folder, by name."""
    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{module.name}")
    found: dict[str, type[ClassT]] = {}
    waiting = base.__subclasses__()
    while waiting:
        candidate = waiting.pop()
        waiting.extend(candidate.__subclasses__())
        if "card" in vars(candidate) and candidate.__module__.startswith(f"{folder.__name__}."):
            found[candidate.card.name] = candidate  # type: ignore[attr-defined]
    return dict(sorted(found.items()))


def find(name: str) -> type[Method[Any]]:
    if name not in registry():
        raise InputError(f"Unknown method '{name}'{nearest(name, registry())}")
    return registry()[name]


@cache
def auxiliaries() -> dict[str, type[Auxiliary[Any]]]:
    """The auxiliary losses that can be added to any method, by name."""
    found = registry().items()
    return {name: one for name, one in found if issubclass(one, Auxiliary) and "Added" in vars(one)}
