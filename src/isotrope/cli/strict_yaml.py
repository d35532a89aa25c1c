"""YAML as a recipe needs it: small, flat, every key a word that stands once.

``yaml.safe_load`` alone takes the last of two equal keys, follows aliases that unfold to billions of values, and ends
in a traceback on deep nesting and on impossible dates. The events of the file are looked at first: they cost no memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from isotrope.errors import InputError

LARGEST = 1_000_000  # bytes
DEEPEST = 10  # mappings and lists inside one another
ALIASES = 20
WORDS = ("method", "model", "pooling", "about")
# What PyYAML raises beyond its own class, for numbers and dates that are none.
ODD = (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError)


class _Loader(yaml.SafeLoader):
    """The safe loader, with keys that are words and stand once."""

    def construct_mapping(self, node: Any, deep: bool = False) -> Any:
        seen = set()
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            name, line = self.construct_object(key, deep=True), key.start_mark.line + 1
            if not isinstance(name, str):
                raise InputError(f"line {line}: the key {str(key.value)[:60]!r} is not a word; put it in quotes.")
            if name in seen:
                raise InputError(f"line {line}: {name[:60]!r} stands twice; take one of them out.")
            seen.add(name)
        return super().construct_mapping(node, deep)


def read_yaml(path: Path) -> Any:
    """The one document of a file, or an ``InputError``."""
    if path.stat().st_size > LARGEST:
        raise InputError(f"{path}: the file is larger than {LARGEST:,} bytes; a recipe is a page of settings.")
    try:
        text = path.read_text(encoding="utf-8")
        _check_events(text)
        found = yaml.load(text, Loader=_Loader)
        _check_types(found)
        return found
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a YAML file ({' '.join(str(error).split())[:200]}).") from error
    except ODD as error:
        raise InputError(f"{path}: a value cannot be read ({str(error)[:200]}); put it in quotes.") from error


def _check_types(found: Any) -> None:
    """What names something is a word; a setting is a word, a number, yes or no, or nothing."""
    whole = found if isinstance(found, dict) else {}
    settings = whole.get("settings")
    _check_values({name: whole.get(name) for name in WORDS}, str, "a word")
    if isinstance(settings, dict):
        _check_values(settings, str | int | float, "a word, a number, or yes or no")


def _check_values(values: dict[str, Any], wanted: Any, what: str) -> None:
    for name, value in values.items():
        if value is not None and not isinstance(value, wanted):
            raise InputError(f"{name} is {what}, not a {type(value).__name__}.")


def _check_events(text: str) -> None:
    depth = aliases = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        aliases += isinstance(event, yaml.AliasEvent)
        line = event.start_mark.line + 1
        if depth > DEEPEST:
            raise InputError(f"line {line}: values are nested more than {DEEPEST} deep; a recipe is flat.")
        if aliases > ALIASES:
            raise InputError(f"line {line}: more than {ALIASES} aliases (*name); write the values out.")
