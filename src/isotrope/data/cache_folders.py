"""What the cache holds is whole, or it is made again: the facts of a folder hold size and checksum of every file.

Checking reads all of it, at the speed of CRC-32: a second or two for ten million sentences.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isotrope.checksums import damage, sum_of, sums_of
from isotrope.files import discard, write_json
from isotrope.progress import say

FILES, CHECK = "files", "check"  # in the facts of a folder: the checksums of its files, and that of the facts


def write_facts(facts_file: Path, facts: Mapping[str, Any]) -> None:
    """The last file of a folder: what is known of it, and the checksums of everything that stands there."""
    whole = {**facts, FILES: sums_of(facts_file.parent.iterdir())}
    facts_file.write_text(json.dumps({**whole, CHECK: _check(whole)}), encoding="utf-8")


def _check(facts: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode())


def is_whole(facts_file: Path, source: str, what: str = "token cache") -> bool:
    """Whether the folder of these facts is there, every file as it was written; a damaged one is taken away and said.

    ``source``: what the cache was made of.
    """
    folder = facts_file.parent
    if not folder.exists():
        return False
    try:
        facts = json.loads(facts_file.read_text(encoding="utf-8"))
        as_written = CHECK not in facts or facts.pop(CHECK) == _check(facts)
        wrong = damage(folder, facts.get(FILES)) if as_written else f"{facts_file.name} is not as it was written"
    except (OSError, ValueError, AttributeError, TypeError):
        wrong = f"{facts_file.name} is missing or damaged"
    if wrong is None:
        return True
    say(f"The {what} of {source} is damaged ({wrong}); it is made again")
    discard(folder)
    return False


def write_sum(file: Path) -> None:
    """Size and checksum of a single file of the cache, next to it."""
    write_json(_sum_file(file), {file.name: sum_of(file)})


def is_whole_file(file: Path) -> bool:
    """Whether a file of the cache is there as it was written; one without a checksum was left by a killed process."""
    if not file.is_file() or not _sum_file(file).is_file():
        return False
    try:
        wrong = damage(file.parent, json.loads(_sum_file(file).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        wrong = f"{_sum_file(file).name} is damaged"
    if wrong is not None:
        say(f"{file}: damaged ({wrong}); it is made again")
    return wrong is None


def _sum_file(file: Path) -> Path:
    return file.with_name(f"{file.name}.sum")


def sealed(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts that stand alone in a file, with a checksum of their own."""
    return {**facts, CHECK: _check(facts)}


def unsealed(found: Any) -> dict[str, Any]:
    """The facts of ``sealed``. Raises ``ValueError`` where they are not as they were written."""
    if not isinstance(found, dict) or found.pop(CHECK, None) != _check(found):
        raise ValueError("not as it was written")
    return found
