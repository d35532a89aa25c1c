"""Words for tab completion, found without importing torch: names of methods and spaces, from the cards in the files."""

from __future__ import annotations

import re
from pathlib import Path

BUILTIN = ("builtin", "builtin-base", "builtin-static")
HEAD = "head"  # no method: it has no file among them
CARD_NAME = re.compile(r'^        name="([a-z0-9-]+)",$', re.MULTILINE)


def method_names() -> list[str]:
    """The names that ``train`` takes."""
    return sorted([HEAD, *_carded_in("methods")])


def space_names() -> list[str]:
    """The names that ``fit-space`` takes."""
    return sorted(_carded_in("spaces"))


def _carded_in(room: str) -> list[str]:
    files = (Path(__file__).parents[1] / room).glob("*.py")
    return [name for file in files for name in CARD_NAME.findall(file.read_text(encoding="utf-8"))]


def complete_method(incomplete: str) -> list[str]:
    """Names of methods that begin so; else the shell offers files."""
    return [name for name in method_names() if name.startswith(incomplete)]


def complete_model(incomplete: str) -> list[str]:
    """The built-in models; else the shell offers folders."""
    return [name for name in BUILTIN if name.startswith(incomplete)]
