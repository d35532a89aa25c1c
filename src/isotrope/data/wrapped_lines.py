"""Whether the lines of a text are wrapped at a width, so that a sentence goes on from one to the next."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

LOOKED_AT = 5_000  # lines
NARROWEST, WIDEST = 40, 200  # characters of a line that was wrapped
SHARE = 0.5  # of the pairs of lines
WITH_ENDS = 0.1  # of the lines: a sentence ends in them
_SENTENCE_END = re.compile(r"[.!?][\"'”’)]*(?:\s|$)")
_STOPS = tuple(".!?:;…。！？\"'”’)]")


def are_wrapped(lines: Sequence[str]) -> bool:
    """Most lines end inside a sentence, go on in lower case, and had no room for the next word.

    Lines in lower case and of one length without any full stop are a corpus of sentences.
    """
    width = _width(lines)
    if not NARROWEST <= width <= WIDEST:
        return False
    full = [line for line in lines if line.strip()]
    if sum(_SENTENCE_END.search(line) is not None for line in full) < WITH_ENDS * len(full):
        return False
    pairs = [(line.rstrip(), after.split()) for line, after in pairwise(lines) if line.strip() and after.strip()]
    wrapped = sum(_goes_on(line, words[0], width) for line, words in pairs)
    return bool(pairs) and wrapped >= SHARE * len(pairs)


def paragraphs(lines: Iterable[tuple[int, str]]) -> Iterable[list[tuple[int, str]]]:
    """Runs of lines between blank ones, with their numbers."""
    found: list[tuple[int, str]] = []
    for number, line in lines:
        if line.strip():
            found.append((number, line))
        elif found:
            yield found
            found = []
    if found:
        yield found


def _width(lines: Sequence[str]) -> int:
    """Nine of ten lines are no longer: a long address does not count."""
    lengths = sorted(len(line.rstrip()) for line in lines if line.strip())
    return lengths[(9 * len(lengths)) // 10] if lengths else 0


def _goes_on(line: str, word: str, width: int) -> bool:
    return not line.endswith(_STOPS) and word[0].islower() and len(line) + 1 + len(word) > width
