"""Words inside tokens: which pieces of a vocabulary begin a word and which continue one.

Use it wherever an edit or a mask must not split a word. It reads marks of the vocabulary ("##", "Ġ", "▁"), never
the text, so it works on arrays of ids alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import punctuation
from typing import Any

import numpy as np
import numpy.typing as npt

CONTINUED = "##"  # WordPiece marks the pieces that continue a word
BLANKS = ("Ġ", "▁")  # byte pairs and SentencePiece mark those that follow a blank
ASCII_PUNCTUATION = frozenset(punctuation)


@dataclass(frozen=True, eq=False)
class Words:
    """Where words begin in a sequence of ids, looked up at once for the whole sequence.

    The special tokens that frame a text are ``fixed`` and belong to no word; [UNK] and [MASK] each count as one word.
    All three tables have a row for each id of the vocabulary:

        starts   0: the piece continues a word, 1: it begins one, 2: it begins one whatever stands before it
        stops    1: nothing continues the piece, −1: a lone blank, part of whatever follows
    """

    starts: npt.NDArray[np.int8]
    stops: npt.NDArray[np.int8]
    fixed: npt.NDArray[np.bool_]
    mask: int | None

    @classmethod
    def of(
        cls, vocabulary: Mapping[str, int], specials: frozenset[int], fixed: frozenset[int], mask: int | None
    ) -> Words:
        """The mark that most pieces carry shows the type of vocabulary; where no piece has one, each piece is a word.

        Blanks alone would glue a full stop to its word and make one word of a Chinese sentence, so there punctuation
        and the scripts without blanks begin words too, as they do in BERT.
        """
        carried = {mark: sum(piece.startswith(mark) for piece in vocabulary) for mark in (CONTINUED, *BLANKS)}
        mark = max(carried, key=lambda each: carried[each])
        starts = np.ones(max(vocabulary.values()) + 1, dtype=np.int8)
        stops = np.zeros_like(starts)
        for piece, number in vocabulary.items():
            if mark == CONTINUED:
                starts[number] = not piece.startswith(mark)
            else:
                bare = piece.removeprefix(mark)
                starts[number] = bare != piece or _stands_alone(piece[:1])
                stops[number] = all(map(_stands_alone, bare)) if bare else -1
        starts[list(specials)], stops[list(specials)] = 2, 1
        outside = np.zeros(starts.size, dtype=np.bool_)
        outside[list(fixed)] = True
        return cls(starts, stops, outside, mask)

    def split(self, ids: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Where each word or fixed token begins, and which of these, by number, are words."""
        begins = self.starts.take(ids)
        begins[1:] += self.stops.take(ids[:-1])
        begins[:1] = 1
        starts = (begins > 0).nonzero()[0]
        return starts, (~self.fixed.take(ids.take(starts))).nonzero()[0]

    def split_pieces(self, ids: npt.NDArray[Any]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """As ``split``, each piece taken for a word."""
        return np.arange(ids.size), (~self.fixed.take(ids)).nonzero()[0]


def _stands_alone(letter: str) -> bool:
    """Punctuation, and the scripts without blanks: Chinese and Japanese with their punctuation; Korean has blanks."""
    return letter in ASCII_PUNCTUATION or (letter >= "\u2e80" and not "\uac00" <= letter <= "\ud7a3")
