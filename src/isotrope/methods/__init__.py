"""One file a paper. A file dropped into this folder is found by the command line, the recipes and the comparison.

The room shares its name with the verb that lists the methods, so the room itself can be called:
``isotrope.methods()``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isotrope.callable_room import make_callable


def _verb() -> Callable[..., Any]:
    from isotrope.api import methods

    return methods


make_callable(__name__, _verb)
