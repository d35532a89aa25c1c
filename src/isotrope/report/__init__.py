"""The report: one page that opens anywhere, or a single figure of it.

The room shares its name with the verb, so the room itself can be called:
``isotrope.report("runs/first", output="report.html")``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isotrope.callable_room import make_callable


def _verb() -> Callable[..., Any]:
    from isotrope.api import report

    return report


make_callable(__name__, _verb)
