"""How long every run of a comparison is: equal steps, equal passes over its text, or equal seconds of training."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from isotrope.errors import InputError

STEPS = 200  # where nothing is given
LENGTHS = ("max_steps", "epochs", "max_seconds")
UNITS = {"s": 1, "m": 60, "h": 3600}


def equal_length(settings: Mapping[str, Any], budget: str | float | None = None) -> dict[str, Any]:
    """The settings of the loop, of which one says how long a run is. ``budget`` is a time such as 90s, 10m or 2h."""
    given = [*(name for name in LENGTHS if settings.get(name) is not None), *(["budget"] if budget is not None else [])]
    if len(given) > 1:
        raise InputError(f"{' and '.join(given)} were given; all runs are equal in one of them, so give one.")
    if budget is not None:
        return {**settings, "max_steps": None, "max_seconds": seconds_of(budget)}
    if given and given != ["max_steps"]:
        return {**settings, "max_steps": None}  # a method may have a number of its own
    return {"max_steps": STEPS, **settings}


def seconds_of(budget: str | float) -> float:
    """Of a number of seconds, or of a number with s, m or h behind it."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smh]?)\s*", str(budget))
    seconds = float(found[1]) * UNITS[found[2] or "s"] if found else math.nan
    if not seconds > 0:
        raise InputError(f"budget must be a time above 0, such as 90s, 10m or 2h; '{budget}' was given.", "budget")
    return seconds
