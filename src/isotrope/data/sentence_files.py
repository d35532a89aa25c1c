"""The sentences of a file or a list, for everything that looks at sentences without training on them.

A file is read once, from top to bottom. Training opens a ``Corpus`` instead, which keeps token arrays on disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from isotrope.data.readers import read
from isotrope.data.record_types import Record, record_type_named
from isotrope.data.sources import find_records
from isotrope.errors import InputError

Place = str | os.PathLike[str]
Texts = Place | Sequence[str]


@dataclass(frozen=True)
class Sentences:
    """``texts`` in order, without the empty ones; ``lines`` are where they stand in the file, from 1."""

    where: str
    texts: list[str]
    lines: list[int]
    empty: int


def sentences_of(source: Texts, columns: Sequence[str] | None = None) -> list[str]:
    """The sentences of a file, or of a list; empty ones are left out, and none at all is refused."""
    return some_sentences(source, columns).texts


def some_sentences(source: Texts, columns: Sequence[str] | None = None) -> Sentences:
    """As ``read_sentence_file``; refuses a source without a sentence."""
    found = read_sentence_file(source, columns)
    if not found.texts:
        raise InputError(f"{found.where}: no sentences found.")
    return found


def read_sentence_file(source: Texts, columns: Sequence[str] | None = None) -> Sentences:
    """The sentences with their lines, and how many records were empty; there may be no sentence at all."""
    where, records = records_of(source, "sentences", columns)
    read_records = list(records)
    full = [record for record in read_records if record.texts[0]]
    texts, lines = [record.texts[0] for record in full], [record.line for record in full]
    return Sentences(where, texts, lines, len(read_records) - len(full))


def records_of(
    source: Place | Sequence[Any], record_type: str, columns: Sequence[str] | None = None
) -> tuple[str, Iterable[Record]]:
    """What to call the source in a message, and its records of one type.

    ``find_records`` tries several record types and takes a digest of the content, for which it reads a file twice.
    """
    if isinstance(source, str | os.PathLike):
        return str(source), read(source, record_type_named(record_type), columns)
    found = find_records(source, (record_type,), columns, split=False)
    return found.where, found.records
