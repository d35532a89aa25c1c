"""Records on disk, tokenized once: memory-mapped, keyed by the content of the file and the tokenizer."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from isotrope.allocator import return_free_memory
from isotrope.data.cache_folders import is_whole
from isotrope.data.corpus_files import FORMAT, Counts, Keys, Tokenizer, layout_of, whole_keys
from isotrope.data.corpus_writer import build
from isotrope.data.record_types import RECORD_TYPES, Record, RecordType, record_type_named
from isotrope.data.sources import find_records, read_sentences
from isotrope.data.span_file import SpanFile
from isotrope.data.tables import check_file, content_of
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, written_folder

Ids = npt.NDArray[np.int32]
SWEPT = 1 << 16  # texts looked at in one go where all are


class Sentence(NamedTuple):
    """The ids of a sentence at the beginning of a row, and behind another sentence.

    They differ where blanks count (byte pairs): running text is not its sentences one after another.
    """

    first: Ids
    later: Ids

    def cut(self, tokens: int) -> Sentence:
        return Sentence(self.first[:tokens], self.later[:tokens])


def running_text(sentences: Sequence[Sentence]) -> Ids:
    """Token ids of sentences as one text, with blanks between them, in the order given."""
    return np.concatenate([sentence.later if number else sentence.first for number, sentence in enumerate(sentences)])


class Corpus:
    """Records of one record type, memory-mapped: only what is asked for is read.

    A row is the number of a record. ``field`` names one of the record type's texts; the first one where it is empty.
    """

    def __init__(self, folder: Path) -> None:
        facts = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        self.folder = folder
        self.fingerprint: str = facts["fingerprint"]
        self.record_type: RecordType = record_type_named(facts["record_type"])
        self.counts = Counts(**facts["counts"])
        layout = layout_of(self.record_type, facts["id_type"], facts["running"])
        files = {name: _mapped(folder / name, numbers) for name, numbers in layout.items()}
        self._spans = {name: SpanFile(folder / name, numbers) for name, numbers in layout.items()}
        self._files = files
        # Plain views of the maps: a map takes several times as long to give one number.
        plain = {name: array.view(np.ndarray) for name, array in files.items()}
        self._ids, self._id_ends = plain["ids"], plain["id_ends"]
        # A sentence behind another: the same ids, unless blanks count.
        self._running, self._running_ends = (
            (plain["running"], plain["running_ends"]) if facts["running"] else (self._ids, self._id_ends)
        )
        self.field_keys: Keys = cast(Keys, files["keys"].reshape(-1, len(self.record_type.fields)))
        # What a record is compared by: each of its texts, or all of it where the texts are names that recur.
        by_whole = self.record_type.names
        self.keys: Keys = whole_keys(self.field_keys, files["values"]) if by_whole else self.field_keys
        self.documents: npt.NDArray[np.int64] = plain["documents"]  # [records]: the document of each
        self.starts: npt.NDArray[np.int64] = plain["starts"]  # [documents]: the first record of each

    def __len__(self) -> int:
        return self.counts.records

    def tokens(self, row: int, field: str = "") -> Ids:
        """Token ids of a text that begins a row, without special tokens."""
        return self._cell("ids", "id_ends", row, field).astype(np.int32)

    def sentence(self, row: int) -> Sentence:
        """The ids of a record in both its forms."""
        names = ("ids", "id_ends") if self._running is self._ids else ("running", "running_ends")
        return Sentence(self.tokens(row), self._cell(*names, row, "").astype(np.int32))

    def text(self, row: int, field: str = "") -> str:
        return self._cell("text", "text_ends", row, field).tobytes().decode("utf-8")

    def text_keys(self, row: int) -> set[int]:
        """What a record is compared by; read by position, since a map keeps every page that a random order touches."""
        if self.record_type.names:
            return set(self.keys[row].tolist())
        fields = len(self.record_type.fields)
        return set(self._spans["keys"].between(row * fields, (row + 1) * fields).tolist())

    @property
    def ids(self) -> npt.NDArray[Any]:
        """The token ids of all records, one text after another."""
        return self._ids

    def document(self, row: int) -> range:
        """The rows of the document that a row stands in."""
        number = self.documents.item(row)
        last = number + 1 == len(self.starts)
        return range(self.starts.item(number), len(self) if last else self.starts.item(number + 1))

    def document_tokens(self) -> npt.NDArray[np.int64]:
        """How many tokens each document has, without special tokens."""
        ends = np.append(self.starts[1:], len(self)) * len(self.record_type.fields)
        return np.diff(self._running_ends[ends - 1], prepend=0) + self._longer(self.starts)

    def lengths(self) -> npt.NDArray[np.int64]:
        """How many tokens each text of each record has, [records, fields]."""
        return np.diff(self._id_ends, prepend=0).reshape(len(self), -1)

    def count_longer(self, tokens: int) -> tuple[int, int]:
        """How many texts have more tokens than that, and how many there are."""
        found, before, texts = 0, 0, len(self._id_ends)
        for start in range(0, texts, SWEPT):
            ends = np.asarray(self._id_ends[start : start + SWEPT])
            found += int((np.diff(ends, prepend=before) > tokens).sum())
            before = int(ends[-1])
            self.release()
        return found, texts

    def joined(self, row: int) -> Ids:
        """Token ids of the whole document that a row stands in."""
        return self.stretch(self.document(row))

    def stretch(self, rows: range) -> Ids:
        """Token ids of records that follow each other, as one text with blanks between them."""
        fields, ends = len(self.record_type.fields), self._running_ends
        first = rows[0] * fields
        start, end = ends.item(first - 1) if first else 0, ends.item((rows[-1] + 1) * fields - 1)
        if self._running is self._ids:
            return self._ids[start:end].astype(np.int32)
        behind = self._running[ends.item(first) : end]
        return np.concatenate([self.tokens(rows[0]), behind], dtype=np.int32, casting="unsafe")

    def reach(self, row: int, tokens: int) -> int:
        """How many records from ``row`` on hold ``tokens`` tokens together; at most the rest of its document."""
        fields, last, ends = len(self.record_type.fields), self.document(row).stop, self._running_ends
        start = ends.item(row * fields - 1) if row else 0
        more = 0 if self._running is self._ids else int(self._longer(row))
        found = ends[(row + 1) * fields - 1 : last * fields : fields].searchsorted(start + tokens - more)
        return min(int(found) + 1, last - row)

    @cached_property
    def names(self) -> list[str]:
        """The distinct labels (or entities, or scores as written), sorted; the place of a name is its number."""
        if self.record_type.value is None:
            raise InputError(f"{self.record_type.name} carry no score or label.")
        return (self.folder / "names").read_text(encoding="utf-8").split("\n")

    @property
    def values(self) -> list[str]:
        """The label, entity or score of every record, as written."""
        names = self.names
        return [names[number] for number in self._files["values"]]

    @property
    def classes(self) -> list[str]:
        """The names of the labels; a label's number is its place here."""
        self.numbers("label")
        return self.names

    @property
    def entities(self) -> list[str]:
        """The names of all entities, hard negatives too; an entity's number is its place here."""
        self.numbers("entity")
        return self.names

    def numbers(self, value: str) -> npt.NDArray[np.int32]:
        """[records]: the number of each record's "label", "entity" or "score", its place in ``names``."""
        if self.record_type.value != value:
            bring = [known.name for known in RECORD_TYPES.values() if known.value == value and not known.in_text]
            raise InputError(f"{self.record_type.name} carry no {value}; bring {' or '.join(bring)}.")
        return self._files["values"]

    def hard_entities(self, row: int) -> npt.NDArray[np.int64]:
        """Numbers of the hard negatives that the data name for a record's entity."""
        self.numbers("entity")
        ends = self._files["other_ends"]
        return np.asarray(self._files["others"][ends[row - 1] if row else 0 : ends[row]], dtype=np.int64)

    @cached_property
    def types(self) -> list[str]:
        """The types of the entities, as written and sorted; the place of a type is its number."""
        self.numbers("entity")
        return [name for name in (self.folder / "type_names").read_text(encoding="utf-8").split("\n") if name]

    def type_numbers(self) -> npt.NDArray[np.int32]:
        """[records]: the number of each entity's type; −1 where the data name none."""
        self.numbers("entity")
        return self._files["types"]

    def page_numbers(self) -> npt.NDArray[np.int32]:
        """[records]: the number of the page that each sentence stands on; −1 where the data name none."""
        self.numbers("entity")
        return self._files["pages"]

    def release(self) -> None:
        """Give touched pages back to the system; they are read again when needed."""
        for array in self._files.values():
            pages = getattr(array, "_mmap", None)
            if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
                pages.madvise(mmap.MADV_DONTNEED)

    def _longer(self, rows: int | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """How many tokens more a sentence has at the beginning of a row than behind another."""
        chosen = np.asarray(rows)
        own, later = (
            ends[chosen] - np.where(chosen > 0, ends[chosen - 1], 0) for ends in (self._id_ends, self._running_ends)
        )
        return np.asarray(own - later)

    def _cell(self, name: str, ends: str, row: int, field: str) -> npt.NDArray[Any]:
        """What the file of that name holds of one text."""
        return self._spans[name].between(*self._spans[ends].borders(self._place(row, field)))

    def _place(self, row: int, field: str) -> int:
        return int(row) * len(self.record_type.fields) + (self.record_type.fields.index(field) if field else 0)


class Records:
    """Some rows of a corpus: what a method makes its views of."""

    def __init__(self, corpus: Corpus, rows: Sequence[int]) -> None:
        self.corpus = corpus
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def fields(self) -> tuple[str, ...]:
        return self.corpus.record_type.fields

    def tokens(self, field: str = "") -> list[Ids]:
        return [self.corpus.tokens(row, field) for row in self.rows]

    def texts(self, field: str = "") -> list[str]:
        return [self.corpus.text(row, field) for row in self.rows]

    def values(self) -> list[str]:
        """Labels, entities or scores, as written."""
        names = self.corpus.names
        return [names[number] for number in self._of(self.corpus.numbers(self.corpus.record_type.value or ""))]

    def scores(self) -> npt.NDArray[np.float64]:
        names = self.corpus.names
        return np.array([float(names[number]) for number in self._of(self.corpus.numbers("score"))])

    def labels(self) -> npt.NDArray[np.int64]:
        """Numbers of the classes; ``corpus.classes`` has the names."""
        return self._of(self.corpus.numbers("label"))

    def entities(self) -> npt.NDArray[np.int64]:
        """Numbers of the entities; ``corpus.entities`` has the names."""
        return self._of(self.corpus.numbers("entity"))

    def hard_entities(self) -> list[npt.NDArray[np.int64]]:
        """Hard negatives of each record's entity; empty where the data name none."""
        return [self.corpus.hard_entities(row) for row in self.rows]

    def documents(self) -> npt.NDArray[np.int64]:
        """Numbers of the documents (or dialogues) that the records stand in."""
        return self._of(self.corpus.documents)

    def positions(self) -> npt.NDArray[np.int64]:
        """Places in the corpus. Two records are neighbours where these differ by one and the documents are the same.

        Being next to each other in a batch is not enough: what stood between two records may be held out.
        """
        return np.asarray(self.rows, dtype=np.int64)

    def whole(self) -> list[Records]:
        """The whole document of each record: all its sentences, the record among them."""
        return [Records(self.corpus, self.corpus.document(row)) for row in self.rows]

    def joined(self) -> list[Ids]:
        """The whole document of each record as one sequence of token ids."""
        return [self.corpus.joined(row) for row in self.rows]

    def _of(self, array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        return np.asarray(array[self.rows], dtype=np.int64)


def open_corpus(
    source: str | os.PathLike[str] | Sequence[Any],
    record_types: Sequence[str],
    tokenizer: Tokenizer,
    columns: Sequence[str] | None = None,
    split: bool = False,
) -> Corpus:
    """The tokenized records of a file (or of Python values), built on first use and found again afterwards.

    ``record_types`` are tried in order: the first whose columns the file has is taken.
    """
    where, record_type, records, content = find_records(source, record_types, columns, split)
    settings = json.dumps([record_type.name, list(columns or ()), split])
    fingerprint = digest(FORMAT, content, tokenizer.fingerprint(), settings)
    return _kept(fingerprint, records, record_type, tokenizer, where)


def open_documents(sources: Sequence[str | os.PathLike[str]], tokenizer: Tokenizer) -> Corpus:
    """The sentences of several files as one corpus of documents, none of which goes on from one file to the next."""
    contents = [content_of(check_file(source)) for source in sources]
    fingerprint = digest(FORMAT, "documents", *contents, tokenizer.fingerprint())
    where = ", ".join(map(str, sources))
    return _kept(fingerprint, read_sentences(sources, contents), record_type_named("documents"), tokenizer, where)


def _kept(
    fingerprint: str, records: Iterable[Record], record_type: RecordType, tokenizer: Tokenizer, where: str
) -> Corpus:
    """The corpus of that fingerprint; the records are read only where there is none yet."""
    folder = cache_folder() / "corpora" / fingerprint
    if not is_whole(folder / "corpus.json", where):
        with written_folder(folder, whole="corpus.json") as temporary:
            build(temporary, records, record_type, tokenizer, fingerprint, where)
        return_free_memory()
    return Corpus(folder)


def _mapped(path: Path, dtype: str) -> npt.NDArray[Any]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=dtype)
    return np.memmap(path, dtype=dtype, mode="r")
