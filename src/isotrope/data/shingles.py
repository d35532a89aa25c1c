"""Texts as sets of shingles: three words in a row, hashed to 32 bits.

    "A man plays the guitar."  →  {a man plays, man plays the, plays the guitar}

The words are those of ``compared_words.py``, so case, accents and punctuation do not count. A text of fewer than three
words is one shingle. Chinese and Japanese are written without blanks: there each character is a word. Use the sets to
compare texts by what they share (``near_duplicates.py``); for equality the joined words are enough.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np
import numpy.typing as npt

WIDTH = 3  # words of a shingle
MOST = 1000  # shingles of a text; what follows in a longer one does not count
BLOCK = 16_384  # texts that are hashed together
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


def split_words(line: str) -> list[str]:
    """The words of a line of ``compared_words``; a character each where a script has no blanks."""
    return line.split() if line.isascii() else [one for word in line.split() for one in _UNSPACED_WORD.findall(word)]


def shingle_sets(lines: Iterable[str]) -> ShingleSets:
    """Of texts as lines of the words that are compared; a text has one shingle at least."""
    values, sizes = [np.empty(0, dtype=np.uint32)], [np.empty(0, dtype=np.int64)]
    remaining = iter(lines)
    while block := list(islice(remaining, BLOCK)):
        keys = _block_keys([split_words(line)[: MOST + WIDTH - 1] for line in block])
        values.append((keys & np.uint64(0xFFFFFFFF)).astype(np.uint32))
        sizes.append(np.bincount((keys >> np.uint64(32)).astype(np.int64), minlength=len(block)))
    return ShingleSets(np.concatenate(values), np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64))


def _block_keys(texts: list[list[str]]) -> npt.NDArray[np.uint64]:
    """Number of the text in the upper 32 bits, shingle in the lower; sorted, each once."""
    padded = [[*words, *[""] * (WIDTH - len(words))] for words in texts]
    lengths = np.array([len(words) for words in padded])
    count = int(lengths.sum())
    hashed = np.fromiter((zlib.crc32(word.encode()) for words in padded for word in words), np.uint64, count)
    owner = np.repeat(np.arange(len(texts), dtype=np.uint64), lengths)
    left = np.repeat(np.cumsum(lengths), lengths) - np.arange(count)  # words from here to the end of the text
    mixed = np.zeros(count - WIDTH + 1, dtype=np.uint64)
    for place in range(WIDTH):
        mixed = (mixed + hashed[place : count - WIDTH + 1 + place] + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    begins = np.flatnonzero(left >= WIDTH)
    return np.unique((owner[begins] << np.uint64(32)) | (mixed[begins] >> np.uint64(32)))
