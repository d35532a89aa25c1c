"""Where a sentence may stand inside a longer text: wherever its first six words follow one another.

    key of place i = Σ_k hash(word_{i+k}) · F^{6−k}  mod 2⁶⁴        k = 0 … 5

The keys of all places of many texts are computed at once, and a table of four million marks drops nearly all of them.
What is left is looked up among the sorted keys of the sentences; it gives the words from that place on, as many as a
sentence with this beginning has. No sentence is missed. A run of words that is none may be given, so the caller looks
it up (``protected_sentences.py``). A place costs as much as there are different lengths of sentences that begin alike,
however many these are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

WIDTH = 6  # words that are hashed together
MARKS = 22  # bits of a key that are its place in the table of marks
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_REST = np.uint64(64 - MARKS)
Keys = npt.NDArray[np.uint64]


class WordRuns:
    """Beginnings and lengths of sentences, which are given as words joined by blanks; those under six are left out."""

    def __init__(self, sentences: Iterable[str]) -> None:
        long = [sentence for sentence in sentences if sentence.count(" ") >= WIDTH - 1]
        keys = _keys_of(word for sentence in long for word in sentence.split(" ", WIDTH)[:WIDTH])[::WIDTH]
        lengths = np.fromiter((sentence.count(" ") + 1 for sentence in long), np.int64, len(long))
        order = np.lexsort((lengths, keys))
        keys, lengths = keys[order], lengths[order]
        different = np.ones(len(keys), dtype=np.bool_)
        different[1:] = (keys[1:] != keys[:-1]) | (lengths[1:] != lengths[:-1])
        self._keys, self._lengths = keys[different], lengths[different]
        self._marked = np.zeros(1 << MARKS, dtype=np.bool_)
        self._marked[self._keys >> _REST] = True

    def candidates(self, texts: Sequence[Sequence[str]]) -> Iterator[tuple[int, str]]:
        """The number of a text, given as its words, and a run of its words that may be a sentence."""
        words = list(chain.from_iterable(texts))
        keys = _keys_of(words)
        places = np.flatnonzero(self._marked[keys >> _REST])
        begins, ends = (np.searchsorted(self._keys, keys[places], side=side) for side in ("left", "right"))
        known = begins < ends
        places = places[known]
        text_ends = np.cumsum([len(text) for text in texts])
        owners = np.searchsorted(text_ends, places, side="right")
        for place, owner, end, begin, behind in zip(
            *(found.tolist() for found in (places, owners, text_ends[owners], begins[known], ends[known])), strict=True
        ):
            for length in self._lengths[begin:behind].tolist():
                if place + length <= end:
                    yield owner, " ".join(words[place : place + length])


def _keys_of(words: Iterable[str]) -> Keys:
    """[places]: of each six words in a row."""
    hashes = np.fromiter(map(hash, words), np.int64).view(np.uint64)
    count = max(len(hashes) - WIDTH + 1, 0)
    keys = np.zeros(count, dtype=np.uint64)
    for place in range(WIDTH):
        keys = (keys + hashes[place : place + count]) * _FACTOR
    return keys
