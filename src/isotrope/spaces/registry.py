"""Find the spaces: every ``Space`` with a name in a module of this folder."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import isotrope.spaces
from isotrope.errors import InputError, nearest
from isotrope.methods.base import Card
from isotrope.methods.registry import registry as methods
from isotrope.spaces.base import Space


@cache
def registry() -> dict[str, type[Space]]:
    for module in pkgutil.iter_modules(isotrope.spaces.__path__):
        importlib.import_module(f"isotrope.spaces.{module.name}")
    found: dict[str, type[Space]] = {}
    waiting = Space.__subclasses__()
    while waiting:
        space = waiting.pop()
        waiting.extend(space.__subclasses__())
        if space.name and space.__module__.startswith("isotrope.spaces."):
            found[space.name] = space
    return dict(sorted(found.items()))


def find(name: str) -> type[Space]:
    if name in methods():
        raise InputError(f"'{name}' is trained, not fitted: isotrope train {name} DATA.")
    if name not in registry():
        raise InputError(f"No space is called '{name}'{nearest(name, registry())}")
    return registry()[name]


def cards() -> list[Card]:
    return [space.card() for space in registry().values()]
