"""The words of a table in the ids of a tokenizer: texts in ids → word numbers, and back with some words replaced."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
    texts: Numbers  # the number of the text that each word belongs to
    numbers: Numbers  # the place of each word in the table; the size of the table for unknown words
    manner: Numbers  # how each is written: as it is, with a capital, behind a blank
    count: int  # texts


class Spelling:
    """Each word in every manner that the tokenizer distinguishes: as it is, with a capital, behind a blank.

    ``read`` finds the words of texts in ids, and ``write`` puts others in their place, in the same manner. A word that
    the vocabulary cannot spell is never put in.
    """

    def __init__(self, table: WordTable, tokenizer: TextTokenizer) -> None:
        self.table, self.words = table, tokenizer.words
        texts = [manner(word) for manner in _manners(tokenizer) for word in table.words]
        self.pieces, self.lengths = tokenizer.flat(texts)
        self.begins = self.lengths.cumsum() - self.lengths
        unknown = np.flatnonzero(self.pieces == tokenizer.tokenizer.unk_token_id)
        self.lengths[np.searchsorted(self.begins, unknown, side="right") - 1] = 0
        raw = self.pieces.astype(np.int32).tobytes()
        spans = zip(self.begins.tolist(), (self.begins + self.lengths).tolist(), strict=True)
        self.keys: dict[bytes, int] = {}
        for number, (start, end) in enumerate(spans):
            if start < end:
                self.keys.setdefault(raw[4 * start : 4 * end], number)

    def read(self, sequences: Sequence[npt.NDArray[np.integer]]) -> Spelled:
        """Texts in ids, cut into words and looked up."""
        ids = np.concatenate([*sequences, np.empty(0, dtype=np.int64)]).astype(np.int64)
        lengths = np.array([len(each) for each in sequences], dtype=np.int64)
        firsts = (lengths.cumsum() - lengths)[lengths > 0]
        starts = np.union1d(_word_starts(self.words, ids), firsts).astype(np.int64)
        raw, ends = ids.astype(np.int32).tobytes(), np.append(starts[1:], len(ids))
        spans = zip((4 * starts).tolist(), (4 * ends).tolist(), strict=True)
        size = len(self.table.words)
        keys = (self.keys.get(raw[start:end], -1) for start, end in spans)
        found = np.fromiter(keys, dtype=np.int64, count=len(starts))
        texts = np.flatnonzero(lengths)[np.searchsorted(firsts, starts, side="right") - 1] if len(starts) else starts
        numbers = np.where(found < 0, size, found % size)
        return Spelled(ids, starts, texts, numbers, np.maximum(found, 0) // size, len(sequences))

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


def _manners(tokenizer: TextTokenizer) -> list[Callable[[str], str]]:
    """How a word can be written, as far as the ids differ."""
    manners: tuple[Callable[[str], str], ...] = (str, str.capitalize, " {}".format)
    plain = tokenizer.flat(["an"])[0].tolist()
    return [manner for manner in manners if manner is str or tokenizer.flat([manner("an")])[0].tolist() != plain]


def _word_starts(words: Words, ids: Ids) -> Numbers:
    return words.split(ids)[0].astype(np.int64) if len(ids) else np.empty(0, dtype=np.int64)
