"""Index and query.

The room shares its name with the verb, so the room itself can be called:
``isotrope.search("builtin", "sentences.txt", "a query")``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isotrope.callable_room import make_callable


def _verb() -> Callable[..., Any]:
    from isotrope.api import search

    return search


make_callable(__name__, _verb)
