"""A recipe: the settings of a training run as a YAML file, such as those in recipes/."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from isotrope.errors import InputError

KEYS = ("method", "model", "pooling", "settings", "sources", "about")


@dataclass(frozen=True)
class Recipe:
    """What a recipe sets; options of the command line win over it. ``sources`` are several data sets of one run."""

    method: str | None = None
    model: str | None = None
    pooling: str | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    sources: list[dict[str, Any]] | None = None


def read_recipe(path: Path, method: str | None) -> Recipe:
    """Read a recipe for ``method``; for None its own is taken, or its sources. Anything else is an ``InputError``."""
    from isotrope.cli.strict_yaml import read_yaml

    if not path.is_file():
        raise InputError(f"{path}: no such recipe.")
    found = read_yaml(path)
    if not isinstance(found, dict):
        raise InputError(f"{path}: a recipe is a mapping with method, model, pooling and settings.")
    unknown = set(found) - set(KEYS)
    if unknown:
        raise InputError(
            f"{path}: unknown keys {', '.join(sorted(map(str, unknown)))}; a recipe has {', '.join(KEYS)}."
        )
    if "sources" in found and "method" in found:
        raise InputError(f"{path}: each source has its own method; leave method out.")
    own = found.get("method")
    if own is not None and not isinstance(own, str):
        raise InputError(f"{path}: method is the name of one; {own!r} was given.")
    if own is not None and method is not None and own != method:
        raise InputError(f"{path}: this recipe is for {own}, not {method}.")
    settings = found.get("settings", {})
    if not isinstance(settings, dict):
        raise InputError(f"{path}: settings is a mapping from name to value.")
    return Recipe(method or own, found.get("model"), found.get("pooling"), settings, found.get("sources"))
