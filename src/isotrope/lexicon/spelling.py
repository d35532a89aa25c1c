"""The words of a table in the ids of a tokenizer: texts in ids → word numbers, and back with some words replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isotrope.lexicon.word_table import Numbers, WordTable
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.tokens.word_pieces import Words

Ids = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Spelled:
    """Some texts, one after another, cut into words."""

    ids: Ids
    starts: Numbers  # where each word begins
    texts: Numbers  # whose each word is
    numbers: Numbers  # of each word in the table; the size of the table for others
    manner: Numbers  # how each is written: behind a blank or not, with a capital or not
    count: int  # texts


class Spelling:
    """Each word in every manner that the tokenizer tells apart: as it is, with a capital, behind a blank."""

    def __init__(self, table: WordTable, tokenizer: TextTokenizer) -> None:
        self.table, self.words = table, tokenizer.words
        manners = [(before, capital) for before in ("", " ") for capital in (False, True) if not (before and capital)]
        plain = tokenizer.flat(["an"])[0].tolist()
        manners = [
            (b, c)
            for b, c in manners
            if not (b or c) or tokenizer.flat([b + ("An" if c else "an")])[0].tolist() != plain
        ]
        texts = [
            before + (word.capitalize() if capital else word) for before, capital in manners for word in table.words
        ]
        self.pieces, self.lengths = tokenizer.flat(texts)
        self.begins = self.lengths.cumsum() - self.lengths
        unknown = np.flatnonzero(self.pieces == tokenizer.tokenizer.unk_token_id)
        self.lengths[np.searchsorted(self.begins, unknown, side="right") - 1] = (
            0  # what cannot be spelled is never put in
        )
        raw = self.pieces.astype(np.int32).tobytes()
        spans = zip(self.begins.tolist(), (self.begins + self.lengths).tolist(), strict=True)
        self.keys: dict[bytes, int] = {}
        for number, (start, end) in enumerate(spans):
            if start < end:
                self.keys.setdefault(raw[4 * start : 4 * end], number)

    def read(self, sequences: Sequence[npt.NDArray[np.integer]]) -> Spelled:
        ids = np.concatenate([*sequences, np.empty(0, dtype=np.int64)]).astype(np.int64)
        lengths = np.array([len(each) for each in sequences], dtype=np.int64)
        firsts = (lengths.cumsum() - lengths)[lengths > 0]
        starts = np.union1d(_word_starts(self.words, ids), firsts).astype(np.int64)
        raw, ends = ids.astype(np.int32).tobytes(), np.append(starts[1:], len(ids))
        spans = zip((4 * starts).tolist(), (4 * ends).tolist(), strict=True)
        size = len(self.table.words)
        found = np.fromiter(
            (self.keys.get(raw[start:end], -1) for start, end in spans), dtype=np.int64, count=len(starts)
        )
        texts = np.flatnonzero(lengths)[np.searchsorted(firsts, starts, side="right") - 1] if len(starts) else starts
        return Spelled(
            ids, starts, texts, np.where(found < 0, size, found % size), np.maximum(found, 0) // size, len(sequences)
        )

    def write(self, spelled: Spelled, chosen: Numbers) -> tuple[list[Ids], list[npt.NDArray[np.bool_]]]:
        """The texts with the words that are ``chosen`` (−1: the word itself), and which of their tokens are new."""
        size = len(self.table.words)
        pieces = np.where(chosen < 0, 0, chosen) + spelled.manner * size
        put = (chosen >= 0) & (self.lengths[pieces] > 0)
        old = np.append(spelled.starts[1:], len(spelled.ids)) - spelled.starts
        lengths = np.where(put, self.lengths[pieces], old)
        begins = np.where(put, self.begins[pieces], spelled.starts)
        places = (begins - lengths.cumsum() + lengths).repeat(lengths) + np.arange(lengths.sum())
        new = put.repeat(lengths)
        ids = np.empty(len(new), dtype=np.int64)
        ids[new], ids[~new] = self.pieces[places[new]], spelled.ids[places[~new]]
        ends = np.bincount(spelled.texts, weights=lengths, minlength=spelled.count).cumsum().astype(np.int64)[:-1]
        return np.split(ids, ends), np.split(new, ends)


def _word_starts(words: Words, ids: Ids) -> Numbers:
    return words.split(ids)[0].astype(np.int64) if len(ids) else np.empty(0, dtype=np.int64)
