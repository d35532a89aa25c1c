"""A document as people write it (.md, .markdown, .rst, .txt) → its headings and paragraphs, without marks and code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from isotrope.data.text_lines import lines_of
from isotrope.data.wrapped_lines import LOOKED_AT, are_wrapped, paragraphs

MARKDOWN = (".md", ".markdown")
PROSE = (*MARKDOWN, ".rst")
_WORD = re.compile(r"\w")


class Block(NamedTuple):
    """A paragraph, an item of a list, a row of a table; a heading has its ``level``, from 1, and others 0."""

    line: int  # where it begins, from 1
    level: int
    text: str  # on one line


def blocks_of(path: Path) -> Iterator[Block]:
    """In the order of the document. Refuses bytes that are no text, with the line that holds them.

    Markdown and reStructuredText are held in memory; a .txt is a stream.
    """
    suffix = path.suffix.lower()
    if suffix in MARKDOWN:
        from isotrope.data.markdown_blocks import markdown_blocks

        found: Iterator[Block] = markdown_blocks([line for _, line in lines_of(path)])
    elif suffix == ".rst":
        from isotrope.data.rst_blocks import rst_blocks

        found = rst_blocks([line for _, line in lines_of(path)])
    else:
        found = _plain_blocks(path)
    for block in found:
        if _WORD.search(block.text):
            yield block._replace(text=" ".join(block.text.split()))


def row_text(cells: list[str]) -> str:
    """A row of a table as a sentence: what it is about, then what is said of it."""
    first, *others = [cell.strip() for cell in cells if cell.strip()] or [""]
    return f"{first}: {', '.join(others)}" if others else first


def _plain_blocks(path: Path) -> Iterator[Block]:
    """Wrapped lines are joined up to the next blank one; else each line is a paragraph."""
    wrapped = are_wrapped([line for _, line in islice(lines_of(path), LOOKED_AT)])
    for lines in paragraphs(lines_of(path)) if wrapped else ([pair] for pair in lines_of(path)):
        yield Block(lines[0][0], 0, " ".join(line for _, line in lines))
