"""Records → the files of a corpus: they are tokenized block by block and written as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from isotrope.data.cache_folders import write_facts
from isotrope.data.corpus_files import (
    BLOCK,
    Counts,
    Keys,
    Tokenizer,
    combined,
    is_number,
    layout_of,
    text_key,
    whole_keys,
)
from isotrope.data.distinct_keys import count_distinct
from isotrope.data.record_types import Record, RecordType
from isotrope.errors import InputError
from isotrope.progress import bar


def build(
    folder: Path, records: Iterable[Record], record_type: RecordType, tokenizer: Tokenizer, fingerprint: str, where: str
) -> None:
    """Tokenize ``records`` into the files of ``layout_of``; ``corpus.json`` is written last."""
    id_type = "<u2" if tokenizer.vocabulary <= 1 << 16 else "<i4"
    running = record_type.whole is not None and tokenizer.blanks_count
    with CorpusWriter(folder, record_type, id_type, running, where) as writer, bar("tokenizing", None) as advance:
        for block in _blocks(records):
            writer.add(block, tokenizer)
            advance(len(block))
    if not writer.records:
        raise InputError(f"{where}: no records found; {writer.empty:,} lines are empty.")
    writer.sort_names()
    distinct = _distinct(folder, record_type, writer.records)
    counts = Counts(writer.records, writer.empty, writer.records - distinct, distinct, writer.documents)
    facts = {
        "fingerprint": fingerprint,
        "record_type": record_type.name,
        "id_type": id_type,
        "running": running,
        "counts": asdict(counts),
    }
    write_facts(folder / "corpus.json", facts)


class CorpusWriter:
    """The open files of a corpus, and how far each has come."""

    def __init__(self, folder: Path, record_type: RecordType, id_type: str, running: bool, where: str) -> None:
        self.folder, self.record_type, self.where = folder, record_type, where
        self.layout = layout_of(record_type, id_type, running)
        self.records = self.empty = self.documents = 0
        self.last_document = -1
        # The last number of each file of running sums.
        self.ends = {"id_ends": 0, "running_ends": 0, "text_ends": 0, "other_ends": 0}
        self.files: dict[str, BinaryIO] = {}
        self.values: dict[str, int] = {}  # in the order in which they come
        self.types: dict[str, int] = {}
        self.pages: dict[str, int] = {}  # numbered as they come: nobody asks for their names

    def __enter__(self) -> CorpusWriter:
        self.stack = ExitStack()
        for name in self.layout:
            self.files[name] = self.stack.enter_context(open(self.folder / name, "wb"))
        return self

    def __exit__(self, *error: object) -> None:
        self.stack.close()

    def add(self, block: Sequence[Record], tokenizer: Tokenizer) -> None:
        """A block of records; those with an empty text are counted and left out."""
        full = [record for record in block if all(record.texts)]
        self.empty += len(block) - len(full)
        if not full:
            return
        texts = [text for record in full for text in record.texts]
        ids, lengths = tokenizer.opening(texts)
        raw = [text.encode("utf-8") for text in texts]
        self._write("ids", ids)
        self._write_ends("id_ends", lengths)
        if "running" in self.layout:
            following, sizes = tokenizer.following(texts)
            self._write("running", following)
            self._write_ends("running_ends", sizes)
        self.files["text"].write(b"".join(raw))
        self._write_ends("text_ends", [len(item) for item in raw])
        self._write("keys", np.array([text_key(item) for item in raw], dtype="<u8"))
        self._write_documents([record.document for record in full])
        self._write_values(full)
        self.records += len(full)

    def sort_names(self) -> None:
        """Number values and types by their sorted order instead of the order of the file."""
        if self.values:
            numbered = [file for file in ("values", "others") if file in self.layout]
            _sort_names(self.folder, self.values, numbered, "names")
        if "types" in self.layout:
            _sort_names(self.folder, self.types, ["types"], "type_names")

    def _write(self, name: str, numbers: npt.ArrayLike) -> None:
        self.files[name].write(np.asarray(numbers).astype(self.layout[name]).tobytes())

    def _write_ends(self, name: str, lengths: npt.ArrayLike) -> None:
        ends = self.ends[name] + np.cumsum(lengths)
        self._write(name, ends)
        self.ends[name] = int(ends[-1])

    def _write_documents(self, of_record: Sequence[int]) -> None:
        begins = np.diff(np.array(of_record), prepend=self.last_document) != 0
        self._write("documents", self.documents - 1 + np.cumsum(begins))
        self._write("starts", self.records + np.flatnonzero(begins))
        self.documents, self.last_document = self.documents + int(begins.sum()), of_record[-1]

    def _write_values(self, records: Sequence[Record]) -> None:
        if "values" in self.layout:
            values = [value_of(record, self.record_type, self.where) for record in records]
            self._write("values", [self.values.setdefault(value, len(self.values)) for value in values])
        if "others" in self.layout:
            others = [name for record in records for name in record.others]
            self._write("others", [self.values.setdefault(name, len(self.values)) for name in others])
            self._write_ends("other_ends", [len(record.others) for record in records])
        for file, names, seen in (
            ("types", [record.type for record in records], self.types),
            ("pages", [record.page for record in records], self.pages),
        ):
            if file in self.layout:
                self._write(file, [seen.setdefault(name, len(seen)) if name else -1 for name in names])


def value_of(record: Record, record_type: RecordType, where: str) -> str:
    value = record.value or ""
    if not value:
        raise InputError(f"{where}:{record.line}: the {record_type.value} is empty; fill it in, or take the row out.")
    if record_type.value == "score" and not is_number(value):
        raise InputError(f"{where}:{record.line}: the score is '{value}', and a number was expected.")
    if value in record.others:
        raise InputError(f"{where}:{record.line}: '{value}' stands among its own hard negatives; take it out there.")
    return value


def _sort_names(folder: Path, seen: dict[str, int], files: Sequence[str], target: str) -> None:
    """Renumber ``files`` by the sorted names, and write these; −1, which is none, stays."""
    names = sorted(seen)
    number = np.full(len(names) + 1, -1, dtype="<i4")
    number[[seen[name] for name in names]] = np.arange(len(names))
    for file in files:
        (folder / file).write_bytes(number[np.fromfile(folder / file, dtype="<i4")].tobytes())
    (folder / target).write_text("\n".join(names), encoding="utf-8")


def _distinct(folder: Path, record_type: RecordType, records: int) -> int:
    """How many records differ from all earlier ones."""
    fields = len(record_type.fields)

    def blocks(size: int) -> Iterator[Keys]:
        for start in range(0, records, size):
            keys = np.fromfile(folder / "keys", "<u8", size * fields, offset=start * fields * 8).reshape(-1, fields)
            if record_type.names:
                keys = whole_keys(keys, np.fromfile(folder / "values", "<i4", size, offset=start * 4))
            yield combined(keys)

    return count_distinct(blocks, records)


def _blocks(records: Iterable[Record]) -> Iterator[list[Record]]:
    iterator = iter(records)
    while block := list(islice(iterator, BLOCK)):
        yield block
