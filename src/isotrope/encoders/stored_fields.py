"""The fields of a JSON file of a model folder, each with the type and the range that it must have.

A JSON number may come as a string, a list or NaN; Python would carry it far before it fails. Here it is refused at
once, with the file, the field and the value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isotrope.encoders.stored_files import REPAIR, read_facts
from isotrope.errors import InputError

SHOWN = 60  # characters of a value that a message repeats


class Fields:
    """A JSON object and the file that it comes from. A field that is missing is refused unless it has a default."""

    def __init__(self, file: Path, facts: Mapping[str, Any]) -> None:
        self.file, self.facts = file, facts

    @classmethod
    def of(cls, file: Path) -> Fields:
        """The fields of a file that must be there."""
        if not file.is_file():
            raise InputError(f"{file}: the file is missing; copy the model's folder again.")
        return cls(file, read_facts(file))

    def count(self, name: str, least: int = 1, most: int | None = None, default: int | None = None) -> int:
        value = self._value(name, default, f"a whole number from {least}")
        if isinstance(value, bool) or not isinstance(value, int) or value < least or (most or value) < value:
            limit = f" to {most:,}" if most is not None else ""
            raise self.refusal(name, f"a whole number from {least}{limit}")
        return value

    def number(self, name: str, least: float, most: float = math.inf, default: float | None = None) -> float:
        wanted = f"a number from {least:g}" + (f" to {most:g}" if math.isfinite(most) else "")
        value = self._value(name, default, wanted)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.refusal(name, wanted)
        if not math.isfinite(value):
            raise self.refusal(name, wanted)
        return value

    def flag(self, name: str, default: bool | None = None) -> bool:
        value = self._value(name, default, "true or false")
        if not isinstance(value, bool):
            raise self.refusal(name, "true or false")
        return value

    def word(self, name: str, default: str | None = None) -> str:
        value = self._value(name, default, "a name")
        if not isinstance(value, str):
            raise self.refusal(name, "a name")
        return value

    def words(self, name: str, default: str) -> tuple[str, ...]:
        """One name, or a list of names."""
        value = self.facts.get(name, default)
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list) or not names or not all(isinstance(one, str) for one in names):
            raise self.refusal(name, "a name or a list of names")
        return tuple(names)

    def refusal(self, name: str, wanted: str) -> InputError:
        """What to raise where a field is not what it must be."""
        found = "missing" if name not in self.facts else repr(self.facts[name])
        shown = found if len(found) <= SHOWN else f"{found[:SHOWN]}…"
        return InputError(f"{self.file}: {name} is {shown}, and {wanted} was expected; {REPAIR}.")

    def _value(self, name: str, default: Any, wanted: str) -> Any:
        if name not in self.facts:
            if default is None:
                raise self.refusal(name, wanted)
            return default
        return self.facts[name]
