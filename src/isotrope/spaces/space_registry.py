"""Find the spaces: every ``Space`` with a name in a module of this folder."""

from __future__ import annotations

from functools import cache
from typing import Any

import isotrope.spaces
from isotrope.errors import InputError, nearest
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.method_registry import carded_in
from isotrope.methods.frame.method_registry import registry as methods
from isotrope.spaces.space import Space


@cache
def registry() -> dict[str, type[Space[Any]]]:
    return carded_in(isotrope.spaces, Space)


def find(name: str) -> type[Space[Any]]:
    if name in methods():
        raise InputError(f"'{name}' is trained, not fitted: isotrope train {name} DATA.")
    if name not in registry():
        raise InputError(f"Unknown space '{name}'{nearest(name, registry())}")
    return registry()[name]


def cards() -> list[Card]:
    return [space.card for space in registry().values()]
