"""Which lines of a file have no vector: a list next to the vectors, so that rows can be told to lines again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.files import written_file

SUFFIX = ".left_out.txt"


def blank_lines(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> list[int]:
    """The numbers of the lines without a sentence, from 1; the file is streamed."""
    return [record.line for record in read(path, record_type_named("sentences"), columns) if not record.texts[0]]


def write_left_out(vectors: Path, lines: Sequence[int]) -> Path | None:
    """Write the numbers of the lines, from 1, next to ``vectors``; where there are none, an old list is removed."""
    target = vectors.with_suffix(SUFFIX)
    if not lines:
        target.unlink(missing_ok=True)
        return None
    with written_file(target) as temporary:
        temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return target
