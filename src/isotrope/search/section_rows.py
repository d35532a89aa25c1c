"""Documents → the rows of an index: a section each, under its headings; a long one is several, cut at a paragraph."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from isotrope.data.prose_blocks import blocks_of

WORDS = 400  # of a row, about: a reader finds its place, and the best passage of each is a hit
PASSAGE = 50  # words of a passage, where none are asked for: with its headings and names of code, builtin reads it
HEADING = "heading"  # the column that is kept


class Section(NamedTuple):
    """``line`` is where it begins; ``heading`` the title of the page and the headings above it, joined by ›."""

    line: int
    heading: str
    text: str


def sections_of(path: Path) -> Iterator[Section]:
    """In order; a heading without a text of its own is none."""
    headings: dict[int, str] = {}
    line, words, texts = 0, 0, list[str]()
    for block in blocks_of(path):
        if texts and (block.level or words >= WORDS):
            yield Section(line, _joined(headings), "\n\n".join(texts))
            texts = []
        if block.level:
            headings = {level: title for level, title in headings.items() if level < block.level}
            headings[block.level] = block.text
            line, words = block.line, 0
            continue
        if not texts and words:
            line, words = block.line, 0
        line = line or block.line
        texts.append(block.text)
        words += len(block.text.split())
    if texts:
        yield Section(line, _joined(headings), "\n\n".join(texts))


def _joined(headings: dict[int, str]) -> str:
    return " › ".join(headings.values())
