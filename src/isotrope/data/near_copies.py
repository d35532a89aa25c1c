"""Texts that are almost a given one: sets of words with a Jaccard similarity of at least 0.8.

    J(x, y) = |x ∩ y| / |x ∪ y| ≥ t    ⇒    x and y share one of the |x| − ⌈t |x|⌉ + 1 rarest words of x

so a text is held only against those that share such a word with it: nothing is missed, and the time grows with the
text. Words are those of ``compared_words``: case, accents and punctuation do not count, nor does the order of words.
``Protected`` (protected_sentences.py) finds a text word for word, also inside a longer line.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

SIMILAR = 0.8


class NearCopies:
    """The texts to look for, each as its words joined by blanks."""

    def __init__(self, keys: Iterable[str], similar: float = SIMILAR) -> None:
        self.similar = similar
        self.keys = list(dict.fromkeys(keys))
        self._sets = [frozenset(key.split()) for key in self.keys]
        frequency = Counter(word for words in self._sets for word in words)
        self._rank = {
            word: rank for rank, word in enumerate(sorted(frequency, key=lambda word: (frequency[word], word)))
        }
        self._index: dict[int, list[int]] = {}  # rank of a word → numbers of the keys that have it among their rarest
        for number, words in enumerate(self._sets):
            for rank in self._rarest(words):
                self._index.setdefault(rank, []).append(number)

    def found_in(self, words: Sequence[str]) -> list[str]:
        """The keys whose words are almost these."""
        given = frozenset(words)
        candidates = {number for rank in self._rarest(given) for number in self._index.get(rank, ())}
        return [self.keys[number] for number in candidates if self._alike(given, self._sets[number])]

    def _rarest(self, words: frozenset[str]) -> list[int]:
        """Ranks of the rarest words; those that no key has are rarer than all others, and lead to none."""
        count = len(words) - math.ceil(self.similar * len(words)) + 1 if words else 0
        known = self._rank.keys() & words
        count -= len(words) - len(known)
        return sorted(map(self._rank.__getitem__, known))[:count] if count > 0 else []

    def _alike(self, one: frozenset[str], other: frozenset[str]) -> bool:
        less, more = sorted((len(one), len(other)))
        if less < self.similar * more:  # even if all words of the smaller set are shared
            return False
        shared = len(one & other)
        return shared >= self.similar * (less + more - shared)
