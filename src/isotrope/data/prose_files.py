"""Documents as people keep them, a folder of .md files: the command that makes one text of them, a paragraph a line.

Lines of a .txt are texts of their own, and those of a document are often wrapped: read as they are, they would be
halves of sentences. Blank lines part the documents.
"""

from __future__ import annotations

import os
import shlex
from itertools import islice
from pathlib import Path

PROSE = (".md", ".markdown", ".rst")
LOOKED_AT = 10_000  # files of a folder
PARAGRAPHS = """awk -v RS= '{gsub(/[[:space:]]+/, " "); print} END {print ""}'"""


def joining_advice(place: Path) -> str:
    """What to do with a folder or a file of documents, as the end of a sentence; nothing where there are none."""
    if place.is_dir():
        found = _endings(place)
        here = Path.cwd() == place.resolve() or place.resolve() in Path.cwd().parents  # the output would be read again
        if not found or here:
            return ""
        names = " -o ".join(f"-name '*{ending}'" for ending in found)
        chosen = names if len(found) == 1 else rf"\( {names} \)"
        command = rf"find {shlex.quote(str(place))} {chosen} -exec {PARAGRAPHS} {{}} \;"
    elif place.suffix.lower() in PROSE:
        command = f"{PARAGRAPHS} {shlex.quote(str(place))}"
    else:
        return ""
    output = shlex.quote(f"{place.resolve().name if place.is_dir() else place.stem}.txt")
    return f" Documents become a text with a paragraph a line by: {command} > {output}"


def _endings(folder: Path) -> list[str]:
    """The endings of documents that the folder has, in it or below."""
    walked = (name for _, _, names in os.walk(folder) for name in names)
    there = {Path(name).suffix for name in islice(walked, LOOKED_AT)}
    return [ending for ending in (".txt", *PROSE) if ending in there]
