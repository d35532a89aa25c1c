"""What the commands share:

recipes, settings among the words of a command, and a table for people or JSON for programs.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from isotrope.errors import InputError


def read_recipe(path: Path, method: str) -> dict[str, Any]:
    import yaml

    if not path.is_file():
        raise InputError(f"{path}: no such recipe.")
    try:
        recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a YAML file ({str(error).splitlines()[0]}).") from error
    if not isinstance(recipe, dict):
        raise InputError(f"{path}: a recipe is a mapping with method, model, pooling and settings.")
    unknown = set(recipe) - {"method", "model", "pooling", "settings", "about"}
    if unknown:
        raise InputError(
            f"{path}: unknown keys {', '.join(sorted(unknown))}; a recipe has method, model, pooling, settings, about."
        )
    if recipe.get("method", method) != method:
        raise InputError(f"{path}: this recipe is for {recipe['method']}, not {method}.")
    if not isinstance(recipe.get("settings", {}), dict):
        raise InputError(f"{path}: settings is a mapping from name to value.")
    return recipe


def settings_of(words: Sequence[str]) -> dict[str, str]:
    """--name value and --name=value, for settings that only the method knows."""
    plain, settings = apart(words)
    if plain:
        raise InputError(f"'{plain[0]}' was not understood; settings are given as --name value.")
    return settings


def apart(words: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Plain words, and settings given as --name value or --name=value among them."""
    plain: list[str] = []
    settings: dict[str, str] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("--") or word == "--":
            plain.append(word)
            continue
        name, equals, value = word[2:].partition("=")
        if not equals:
            if not rest or rest[0].startswith("--"):
                raise InputError(f"--{name} needs a value.")
            value = rest.pop(0)
        settings[name.replace("-", "_")] = value
    return plain, settings


def own_settings(given: Sequence[str]) -> dict[str, dict[str, str]]:
    """METHOD.SETTING=VALUE, as settings by method."""
    settings: dict[str, dict[str, str]] = {}
    for word in given:
        name, equals, value = word.partition("=")
        method, dot, setting = name.rpartition(".")
        if not (equals and dot and method and setting):
            raise InputError(
                f"--set {word} was not understood; write METHOD.SETTING=VALUE, such as simcse.temperature=0.1."
            )
        settings.setdefault(method, {})[setting] = value
    return settings


def show(value: Any, columns: Sequence[str], rows: Sequence[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        print(json.dumps(value, ensure_ascii=False, indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(*columns)
    for row in rows:
        table.add_row(*(str(row.get(column, "")) for column in columns))
    console = Console()
    Console(width=console.width if console.is_terminal else 200).print(table)
