"""A folder of the token cache is whole, or it is made again: its facts hold the size and checksum of every file.

Checking reads all of it, at the speed of CRC-32: a second or two for ten million sentences.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from isotrope.checksums import damage, sums_of
from isotrope.files import discard
from isotrope.progress import say

FILES, CHECK = "files", "check"  # in the facts of a folder: the checksums of its files, and that of the facts


def write_facts(facts_file: Path, facts: Mapping[str, Any]) -> None:
    """The last file of a folder: what is known of it, and the checksums of everything that stands there."""
    whole = {**facts, FILES: sums_of(facts_file.parent.iterdir())}
    facts_file.write_text(json.dumps({**whole, CHECK: _check(whole)}), encoding="utf-8")


def _check(facts: Mapping[str, Any]) -> int:
    return zlib.crc32(json.dumps(facts, sort_keys=True).encode())


def is_whole(facts_file: Path, source: str) -> bool:
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
    say(f"The token cache of {source} is damaged ({wrong}); it is made again")
    discard(folder)
    return False
