"""Words inside tokens: which pieces of a vocabulary begin a word and which continue one.

Use it wherever an edit or a mask must not split a word. It reads marks of the vocabulary ("##", "Ġ", "▁"), never
the text, so it works on arrays of ids alone. Byte-level pieces are read as the bytes that they spell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import punctuation
from typing import Any

import numpy as np
import numpy.typing as npt

CONTINUED = "##"  # WordPiece marks the pieces that continue a word
BLANKS = ("Ġ", "▁")  # byte pairs and SentencePiece mark those that follow a blank
ASCII_PUNCTUATION = frozenset(punctuation)
FALLBACK = re.compile(r"<0x([0-9A-F]{2})>")  # a byte that SentencePiece has no piece for
PRINTED = (*range(33, 127), *range(161, 173), *range(174, 256))  # bytes that a byte-level vocabulary writes as letters
HIDDEN = (byte for byte in range(256) if byte not in PRINTED)  # the others stand from U+0100 on
BYTES = {chr(byte): byte for byte in PRINTED} | {chr(256 + place): byte for place, byte in enumerate(HIDDEN)}
CONTINUING = bytes(range(0x80, 0xC0))  # in UTF-8, bytes behind the first of a letter
# First bytes of scripts without blanks, and of emoji; Korean (0xea to 0xed) has blanks.
UNSPACED_LEADS = frozenset(bytes([byte]) for byte in (*range(0xE3, 0xEA), 0xEE, 0xEF, *range(0xF0, 0xF5)))


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
                begins, ends = _borders(bare, _bytes_of(bare, mark))
                starts[number] = bare != piece or begins
                stops[number] = ends if bare else -1
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


def _bytes_of(piece: str, mark: str) -> bytes | None:
    """The bytes that a piece spells: each letter of a byte-level vocabulary is one, as is <0xE4> in SentencePiece."""
    if mark == BLANKS[0]:
        return bytes(BYTES[letter] for letter in piece) if all(letter in BYTES for letter in piece) else None
    found = FALLBACK.fullmatch(piece)
    return bytes([int(found[1], 16)]) if found else None


def _borders(piece: str, raw: bytes | None) -> tuple[bool, bool]:
    """Whether a piece begins a word without a blank before it, and whether nothing continues it.

    The bytes of a letter may be cut into several pieces: those behind the first continue it, and of the first its
    leading byte shows the script.
    """
    if raw is None:
        return _stands_alone(piece[:1]), all(map(_stands_alone, piece))
    body = raw.lstrip(CONTINUING)
    text = body.decode("utf-8", errors="ignore")
    begins = _stands_alone(text[0]) if text else body[:1] in UNSPACED_LEADS
    return body == raw and begins, bool(text) and text.encode() == body and all(map(_stands_alone, text))


def _stands_alone(letter: str) -> bool:
    """Punctuation, and the scripts without blanks: Chinese and Japanese with their punctuation; Korean has blanks."""
    return letter in ASCII_PUNCTUATION or (letter >= "\u2e80" and not "\uac00" <= letter <= "\ud7a3")
