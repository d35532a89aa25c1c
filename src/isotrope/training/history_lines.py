"""The lines of metrics.jsonl: appended whole or not at all, and read back without one that a full disk tore."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from isotrope.errors import InputError

Line = dict[str, Any]
KEPT = "kept"  # in a line of the end of a run: measures of the weights that a tactic changed then


def append_line(file: Path, line: Mapping[str, Any]) -> None:
    """Add a line; where the disk takes only a part of it, the file is as it was before."""
    with open(file, "ab", buffering=0) as target:
        before = os.fstat(target.fileno()).st_size
        content = (json.dumps(line) + "\n").encode()
        try:
            while content:
                content = content[target.write(content) :]
        except OSError:
            target.truncate(before)
            raise


def read_lines(file: Path) -> list[Line]:
    """All lines but a last one that was cut short; any other that is no JSON object is a mistake."""
    lines, unreadable = sorted_lines(file)
    if unreadable:
        raise InputError(f"{file}: a line is not JSON (line {unreadable[0]}); was it cut short?")
    return lines


def sorted_lines(file: Path) -> tuple[list[Line], list[int]]:
    """The lines that can be read, and the numbers of those that cannot; a last line without its end is neither."""
    if not file.is_file():
        return [], []
    whole, unreadable = [], []
    *ended, _ = file.read_bytes().split(b"\n")
    for number, raw in enumerate(ended, 1):
        found = _parsed(raw)
        if found is not None:
            whole.append(found)
        elif raw.strip():
            unreadable.append(number)
    return whole, unreadable


def measures_at(history: Sequence[Line], step: int) -> dict[str, float]:
    """What a run measured at a step: of the weights that it kept, where they were changed at its end."""
    found = [line.get(KEPT) or line.get("evaluation") for line in history if line["step"] == step]
    return next((dict(one) for one in reversed(found) if one), {})


def _parsed(raw: bytes) -> Line | None:
    try:
        found = json.loads(raw)
    except ValueError:  # of JSON, and of text that is not UTF-8
        return None
    return found if isinstance(found, dict) and isinstance(found.get("step"), int) else None
