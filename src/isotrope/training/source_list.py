"""The sources of a run as a recipe lists them: names, files, methods and shares, checked before torch is imported."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isotrope.errors import InputError

Place = str | os.PathLike[str]


@dataclass(frozen=True)
class Source:
    """One data set of a run: a file (or a list of records), the method that trains on it, and its share of the batches.

    ``share`` is a weight next to those of the other sources; None for all: by their sizes. ``prompt`` stands before
    each text of the source; None: the model's own. ``settings`` are those of the method, and of the loop those that
    belong to a batch (`batch_size`, `max_length`, `held_out`).
    """

    name: str
    data: Place | Sequence[Any]
    method: str
    share: float | None = None
    prompt: str | None = None
    columns: Sequence[str] | None = None
    split: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)


KEYS = tuple(Source.__dataclass_fields__)


@contextmanager
def about(source: str) -> Iterator[None]:
    """Begin the sentence of a mistake with the source that it is in."""
    try:
        yield
    except InputError as error:
        raise InputError(f"Source '{source}': {error}", error.setting) from error


def read_sources(given: Any) -> tuple[Source, ...]:
    """Sources from what a recipe or a caller lists: mappings with ``data``, ``method`` and the rest of ``Source``."""
    if isinstance(given, str | bytes | Mapping) or not isinstance(given, Sequence):
        raise InputError("sources is a list; each source is a mapping with at least data and method.")
    if not given:
        raise InputError("sources is empty; list at least one, with data and method.")
    found = tuple(_read(number, one) for number, one in enumerate(given, 1))
    twice = [name for name, count in Counter(source.name for source in found).items() if count > 1]
    if twice:
        raise InputError(f"Two sources are named '{twice[0]}'; give each a name of its own.")
    without = [source.name for source in found if source.share is None]
    if without and len(without) < len(found):
        raise InputError(
            f"Some sources have a share, and '{without[0]}' has none; give every source a share, or none of them: "
            "then their sizes decide."
        )
    return found


def _read(number: int, given: Any) -> Source:
    if not isinstance(given, Mapping):
        raise InputError(f"Source {number} is {given!r}; a source is a mapping with at least data and method.")
    name = _name(number, given)
    with about(name):
        for key in given:
            if key not in KEYS:
                raise InputError(
                    f"Unknown key '{key}'; a source has {', '.join(KEYS)}, and what its method takes stands under "
                    "settings."
                )
        for key in ("data", "method"):
            if given.get(key) is None:
                raise InputError(f"{key} is missing.")
        return Source(
            name,
            given["data"],
            str(given["method"]),
            _share(given.get("share")),
            _prompt(given.get("prompt")),
            _columns(given.get("columns")),
            _truth(given.get("split", False)),
            _settings(given.get("settings")),
        )


def _name(number: int, given: Mapping[Any, Any]) -> str:
    """As given, else the file's name without its endings."""
    name, data = given.get("name"), given.get("data")
    if name is None:
        return Path(data).name.split(".")[0] if isinstance(data, str | os.PathLike) else f"source {number}"
    if not isinstance(name, str | int) or not str(name).strip():
        raise InputError(f"Source {number}: name is a word; {name!r} was given.")
    return str(name).strip()


def _share(given: Any) -> float | None:
    if given is None:
        return None
    try:
        share = math.nan if isinstance(given, bool) else float(given)
    except (TypeError, ValueError):
        share = math.nan
    if not math.isfinite(share) or share <= 0:
        raise InputError(f"share is a number above 0; {given!r} was given.")
    return share


def _prompt(given: Any) -> str | None:
    if given is not None and not isinstance(given, str):
        raise InputError(f"prompt is a text; {given!r} was given.")
    return given


def _columns(given: Any) -> list[str] | None:
    if isinstance(given, str):
        return [name.strip() for name in given.split(",")]
    if given is None or (isinstance(given, Sequence) and all(isinstance(name, str) for name in given)):
        return None if given is None else list(given)
    raise InputError(f"columns is a list of names; {given!r} was given.")


def _truth(given: Any) -> bool:
    if not isinstance(given, bool):
        raise InputError(f"split is true or false; {given!r} was given.")
    return given


def _settings(given: Any) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"settings is a mapping from name to value; {given!r} was given.")
    return {str(name).replace("-", "_"): value for name, value in (given or {}).items()}
