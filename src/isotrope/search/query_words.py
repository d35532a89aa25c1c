"""The words that a search by words compares: lower-cased, without accents, a character each in Chinese and Japanese.

    "Café: 東京 trip"  →  cafe, 東, 京, trip

Words of one letter count (C, R, vitamin D), and no list of stop words is taken out: a rare query may be made of them,
and BM25 weighs what stands in every text by next to nothing.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator

from isotrope.data.word_marks import MARKS, VOICING, is_accent
from isotrope.evaluation.lexical import HAN

Stem = Callable[[str], str]
_MARKS = f"{MARKS}\u0300-\u036f"  # accents too, where they stand behind their letter
WORD = re.compile(rf"(?![{VOICING}])[{HAN}][{VOICING}\uff9e\uff9f]?|[^\W{HAN}_]+(?:[{_MARKS}]+[^\W{HAN}_]*)*")


def words_of(text: str, stem: Stem = str) -> list[str]:
    """The words of a text, in order; ``stem`` makes of each what is compared (word_stems.py)."""
    return [stem(_plain(found[0])) for found in WORD.finditer(text)]


def marks_of(text: str, words: Collection[str], stem: Stem = str) -> tuple[tuple[int, int], ...]:
    """Where words of the text are among ``words``, which ``stem`` has made, as (start, end)."""
    wanted = frozenset(words)
    return tuple(found.span() for found in WORD.finditer(text) if stem(_plain(found[0])) in wanted)


def cutting(text: str, marks: Collection[tuple[int, int]], width: int) -> tuple[int, int]:
    """The part of a long text, of at most ``width`` characters, that holds the most marks; the first such."""
    if len(text) <= width:
        return 0, len(text)
    starts = [max(min(start - width // 8, len(text) - width), 0) for start, _ in marks] or [0]
    best = max(starts, key=lambda start: (_within(marks, start, start + width), -start))
    return best, best + width


def _within(marks: Collection[tuple[int, int]], start: int, end: int) -> int:
    return sum(start <= first and last <= end for first, last in marks)


def _plain(word: str) -> str:
    if word.isascii():
        return word.lower()
    return "".join(_letters(word))


def _letters(word: str) -> Iterator[str]:
    for letter in unicodedata.normalize("NFKD", word.casefold()):
        if not is_accent(letter):
            yield letter
