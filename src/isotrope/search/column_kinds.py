"""The kept columns of an index: number, text, boolean or json, found by looking at every value.

A .tsv has no types, so a column is one of numbers where every value that is not empty is one; 007 is a text, as an
identifier keeps its zeros. A column of numbers and texts is one of texts. Lists and objects are kept as JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from isotrope.errors import InputError

NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,17})(?:\.\d+)?(?:[eE][+-]?\d{1,3})?")
KINDS = ("number", "text", "boolean", "json")


def plain(cell: Any, where: str) -> Any:
    """A cell as JSON has it; None where it is empty."""
    if cell is None or cell == "" or isinstance(cell, bool | str):
        return None if cell == "" else cell
    if isinstance(cell, int):
        return cell if abs(cell) < 1 << 63 else float(cell)
    if isinstance(cell, float | Decimal):
        number = float(cell)
        return number if math.isfinite(number) else None
    if isinstance(cell, datetime | date | time):
        return cell.isoformat()
    if isinstance(cell, bytes):
        try:
            return cell.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(f"{where}: a kept column holds bytes that are not UTF-8; leave it out of keep.") from error
    return json.loads(json.dumps(cell, default=str))


def kind_of(value: Any, untyped: bool) -> str | None:
    """The kind of one value; ``untyped``: a text may be a number, as in a .tsv."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, str):
        return "number" if untyped and NUMBER.fullmatch(value.strip()) else "text"
    return "json"


def joined(kinds: Iterable[str]) -> str:
    """One kind for values of several."""
    found = set(kinds)
    if not found:
        return "text"
    if len(found) == 1:
        return found.pop()
    return "json" if "json" in found else "text"


def fitted(value: Any, kind: str) -> Any:
    """The value as its column keeps it; a json value is text."""
    if value is None:
        return None
    if kind == "json":
        return json.dumps(value, ensure_ascii=False)
    if kind == "text":
        return value if isinstance(value, str) else json.dumps(value)
    if kind == "number" and isinstance(value, str):
        number = float(value)
        return int(value) if value.strip().lstrip("-").isdigit() else number
    return value


def given_back(value: Any, kind: str) -> Any:
    """What a hit shows of a kept value."""
    return json.loads(value) if kind == "json" and value is not None else value


def agreed(known: Mapping[str, str], new: Mapping[str, str], empty: Collection[str], where: str) -> dict[str, str]:
    """The columns of an index after rows were added to it; numbers and texts in one column are refused.

    ``empty`` are those of ``new`` without a single value, which fit any column.
    """
    together = dict(known)
    for name, kind in new.items():
        if name in known and name not in empty and known[name] not in (kind, "text"):
            raise InputError(
                f"{where}: the column '{name}' holds {kind} values here and {known[name]} values in the index; "
                "make them alike, or leave the column out of keep."
            )
        together.setdefault(name, kind)
    return together
