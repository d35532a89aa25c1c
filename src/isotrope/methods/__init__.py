"""One file a paper. A file dropped into this folder is found by the command line, the recipes and the comparison.

The room shares its name with the public function that lists it, so the room itself can be called:
``isotrope.methods()``.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isotrope.methods.frame.method import Card


class _Room(ModuleType):
    def __call__(self) -> list[Card]:
        """A card for every method: name, title, paper, year, needs, kind."""
        from isotrope.methods.frame.method_registry import cards

        return cards()


sys.modules[__name__].__class__ = _Room
