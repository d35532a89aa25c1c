"""The seam for other languages: what the table of replacements asks about a language besides its wordnet."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from isotrope.lexicon.wordnet import WordNet

Forms = tuple[str | None, ...]  # None: there is no such form, or it would need another word ("more")


class Inflector(Protocol):
    """The forms of a base form, numbered: place 0 is the base form, and place k is the same form for all words of a
    part of speech.
    """

    def forms(self, part: int, word: str) -> Forms: ...
    def all_forms(self, part: int, word: str) -> set[tuple[str, int]]:
        """Each (form, its number), rarer forms too."""


@dataclass(frozen=True)
class Language:
    """``name`` is part of the key under which a finished table is kept: two languages need two names."""

    name: str
    word: re.Pattern[str]  # a word, a number or a sign of a text in small letters
    function_words: frozenset[str]  # never replaced
    inflected: frozenset[int]  # parts of speech whose other forms may stand for a word
    inflection: Callable[[WordNet], Inflector]
