"""A room that is also a verb: ``isotrope.search`` holds ``isotrope.search.hits`` and can be called.

Python keeps one attribute a name, and importing a room's file puts the room there; so the room itself takes the call:

    def _verb() -> Callable[..., Any]:
        from isotrope.api import search      # a later room: pyproject.toml names this one edge for import-linter

        return search

    make_callable(__name__, _verb)

Use it only where a command and a room have the same name. Any other verb is an attribute of ``isotrope`` alone.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


class CallableRoom(ModuleType):
    """A module whose call is the call of its verb, with the verb's signature."""

    _verb: Callable[[], Callable[..., Any]]

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return self._verb()(*arguments, **settings)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self._verb())


def make_callable(name: str, verb: Callable[[], Callable[..., Any]]) -> None:
    """``verb`` imports and returns the public function when it is first needed, not while the room is imported."""
    room = sys.modules[name]
    room.__class__ = CallableRoom
    room._verb = verb  # type: ignore[attr-defined]
