"""One pass over the records of a text: what can be counted exactly, and a random sample for the rest.

Memory: eight bytes a record for each text and two more keys, and the texts of the sample.
"""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from isotrope.data.compared_words import words_of
from isotrope.data.corpus_files import text_key
from isotrope.data.corpus_writer import value_of
from isotrope.data.protected_sentences import SHORTEST, Protected
from isotrope.data.record_blocks import record_blocks
from isotrope.data.record_types import Record, RecordType
from isotrope.progress import bar

LONG = 1000  # characters: more than a sentence


class Sampled(NamedTuple):
    """A record of the sample, the file that it comes from, and for each of its texts the words that are compared."""

    file: str
    record: Record
    lines: tuple[str, ...]


@dataclass
class Tally:
    """Counts over all records with text; ``empty`` are those without."""

    record_type: RecordType
    protected: Protected | None
    size: int  # of the sample
    seed: int
    records: int = 0
    empty: int = 0
    documents: int = 0
    long: int = 0
    short: int = 0
    longest: int = 0  # characters
    values: Counter[str] = field(default_factory=Counter)
    leaks: Counter[str] = field(default_factory=Counter)  # records that hold a sentence of a test set, by set
    leaking: int = 0
    sample: list[Sampled] = field(default_factory=list)
    places: list[int] = field(default_factory=list)  # numbers of the records of the sample

    def __post_init__(self) -> None:
        self._texts, self._words, self._whole = array("Q"), array("Q"), array("Q")
        self._random = random.Random(self.seed)
        self._last = (-1, -1)

    def add_file(self, number: int, name: str, records: Iterable[Record]) -> None:
        with bar(f"reading {Path(name).name}", None) as advance:
            for block in record_blocks(records, lambda record: sum(map(len, record.texts))):
                words = [self._add(number, name, record) for record in block if all(record.texts)]
                self.empty += len(block) - len(words)
                if self.protected is not None:
                    self._count_leaks(words, self.protected)
                advance(len(block))

    def _add(self, number: int, name: str, record: Record) -> list[list[str]]:
        """Count a record; the words of its texts."""
        if self.record_type.value is not None:
            self.values[value_of(record, self.record_type, name)] += 1
        if (number, record.document) != self._last:
            self.documents, self._last = self.documents + 1, (number, record.document)
        words = [words_of(text) for text in record.texts]
        self._draw(Sampled(name, record, self._measure(record, words)))
        self.records += 1
        return words

    def _count_leaks(self, words: Sequence[Sequence[Sequence[str]]], protected: Protected) -> None:
        found = protected.holders(words)
        self.leaking += len(found)
        for holders in found.values():
            self.leaks.update(holders)

    def _measure(self, record: Record, words: Sequence[Sequence[str]]) -> tuple[str, ...]:
        self._texts.extend(text_key(text.encode()) for text in record.texts)
        lines = tuple(" ".join(own) or text for text, own in zip(record.texts, words, strict=True))
        same = "\t".join(lines)  # a text without a word (a face, a formula) stands for itself
        if self.record_type.names:
            same += f"\t{record.value}"
        self._words.append(text_key(same.encode()))
        self._whole.append(text_key(f"{same}\t{record.value}".encode()))
        self.short += any(len(own) < SHORTEST for own in words)
        characters = max(map(len, record.texts))
        self.long += characters > LONG
        self.longest = max(self.longest, characters)
        return lines

    def _draw(self, sampled: Sampled) -> None:
        """Reservoir sampling: each record is in the sample with the same probability."""
        if len(self.sample) < self.size:
            self.sample.append(sampled)
            self.places.append(self.records)
            return
        slot = self._random.randrange(self.records + 1)
        if slot < self.size:
            self.sample[slot], self.places[slot] = sampled, self.records

    def finish(self) -> None:
        """Put the sample into the order of the text."""
        order = sorted(range(len(self.places)), key=self.places.__getitem__)
        self.sample, self.places = [self.sample[one] for one in order], [self.places[one] for one in order]

    @property
    def text_keys(self) -> npt.NDArray[np.uint64]:
        """[records, fields]: equal texts have equal keys."""
        return np.frombuffer(self._texts, dtype=np.uint64).reshape(-1, len(self.record_type.fields))

    @property
    def word_keys(self) -> npt.NDArray[np.uint64]:
        """[records]: records of the same words have equal keys."""
        return np.frombuffer(self._words, dtype=np.uint64)

    @property
    def valued_keys(self) -> npt.NDArray[np.uint64]:
        """[records]: as ``word_keys``, of records that carry the same label or score as well."""
        return np.frombuffer(self._whole, dtype=np.uint64)
