"""Texts as sets of shingles: three words in a row, hashed to 32 bits.

    "A man plays the guitar."  →  {a man plays, man plays the, plays the guitar}

The words are those of ``compared_words.py``, so case, accents and punctuation do not count. A text of fewer than three
words is one shingle. Chinese and Japanese are written without blanks: there each character is a word. Use the sets to
compare texts by what they share (``near_duplicates.py``); for equality the joined words are enough.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isotrope.data.compared_words import words_of

WIDTH = 3  # words of a shingle
MOST = 1000  # shingles of a text; what follows in a longer one does not count
_UNSPACED = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # kana and Chinese characters
_UNSPACED_WORD = re.compile(f"[{_UNSPACED}]|[^{_UNSPACED}]+")


@dataclass(frozen=True)
class ShingleSets:
    """The shingles of all texts one after another, sorted within a text; ``starts`` has one more entry than texts."""

    values: npt.NDArray[np.uint32]
    starts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> npt.NDArray[np.int64]:
        return np.diff(self.starts)

    def of(self, rows: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.int64]]:
        """The shingles of some texts one after another, and how many each has."""
        sizes = self.sizes[rows]
        shift = np.repeat(self.starts[rows] - (np.cumsum(sizes) - sizes), sizes)
        return self.values[np.arange(int(sizes.sum())) + shift], sizes


def split_words(text: str) -> list[str]:
    """The words that are compared; a character each where a script has no blanks."""
    words = words_of(text)
    if text.isascii():
        return words
    return [part for word in words for part in _UNSPACED_WORD.findall(word)]


def shingles_of(words: Sequence[str]) -> list[int]:
    """The different shingles of a text, sorted; never none."""
    count = min(max(len(words) - WIDTH + 1, 1), MOST)
    return sorted({zlib.crc32(" ".join(words[place : place + WIDTH]).encode()) for place in range(count)})


def shingle_sets(texts: Iterable[Sequence[str]]) -> ShingleSets:
    """Of texts as lists of words."""
    found = [np.array(shingles_of(words), dtype=np.uint32) for words in texts]
    starts = np.concatenate([[0], np.cumsum([len(one) for one in found], dtype=np.int64)]).astype(np.int64)
    return ShingleSets(np.concatenate(found) if found else np.empty(0, dtype=np.uint32), starts)
