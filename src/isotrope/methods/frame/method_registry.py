"""Find the methods: every class with a card of its own in a file of this folder, or in a module from outside."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from isotrope.errors import InputError, nearest
from isotrope.methods.frame.auxiliary import Auxiliary
from isotrope.methods.frame.contract import check_class
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.outside_methods import named_files, outside_modules

ClassT = TypeVar("ClassT")


def registry() -> dict[str, type[Method[Any]]]:
    return _registry(named_files())


@cache
def _registry(files: tuple[Path, ...]) -> dict[str, type[Method[Any]]]:
    found = carded_in(importlib.import_module("isotrope.methods"), Method)
    for module in outside_modules(files):
        own = [one for one in _carded(Method) if one.__module__ == module.__name__]
        if not own:
            raise InputError(f"{module.__file__} holds no method: no class that inherits Method has a card of its own.")
        for method in own:
            check_class(method)
            name = method.card.name
            if found.setdefault(name, method) is not method:
                raise InputError(
                    f"{module.__file__}: there is a method '{name}' already, in {found[name].__module__}; give this "
                    "one another name in its card."
                )
    return dict(sorted(found.items()))


def carded_in(folder: ModuleType, base: type[ClassT]) -> dict[str, type[ClassT]]:
    """Every class with a card that comes from ``base`` and stands in a file of the folder, by name."""
    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{folder.__name__}.{module.name}")
    inside = [one for one in _carded(base) if one.__module__.startswith(f"{folder.__name__}.")]
    return {one.card.name: one for one in sorted(inside, key=lambda one: one.card.name)}  # type: ignore[attr-defined]


def _carded(base: type[ClassT]) -> Iterator[type[ClassT]]:
    waiting = base.__subclasses__()
    while waiting:
        candidate = waiting.pop()
        waiting.extend(candidate.__subclasses__())
        if "card" in vars(candidate):
            yield candidate


def find(name: str) -> type[Method[Any]]:
    if name not in registry():
        raise InputError(f"Unknown method '{name}'{nearest(name, registry())}")
    return registry()[name]


def auxiliaries() -> dict[str, type[Auxiliary[Any]]]:
    """The auxiliary losses that can be added to any method, by name."""
    found = registry().items()
    return {name: one for name, one in found if issubclass(one, Auxiliary) and "Added" in vars(one)}
