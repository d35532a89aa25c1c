"""Records on disk, tokenised once: memory-mapped, keyed by the content of the file and the tokeniser."""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from isotrope.data.kinds import KINDS, Kind, Record, kind_named
from isotrope.data.sources import find_records, read_sentences
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, file_digest, written_folder
from isotrope.progress import bar

FORMAT = "3"  # of the cache; raise it when the layout below changes
BLOCK = 16_384  # records tokenised in one call
Tokenise = Callable[[list[str]], tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]]  # texts → flat ids, lengths
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Counts:
    """What a file held. ``duplicates``: records whose texts all stood earlier in the file."""

    records: int
    empty: int
    duplicates: int
    distinct: int
    documents: int

    def __str__(self) -> str:
        return (
            f"{self.records:,} records, {self.duplicates:,} duplicates (kept, never two in one batch), "
            f"{self.empty:,} empty lines, {self.documents:,} documents"
        )


class Corpus:
    """Records of one kind. Nothing is in memory but what is asked for."""

    def __init__(self, folder: Path) -> None:
        facts = json.loads((folder / "corpus.json").read_text(encoding="utf-8"))
        self.folder = folder
        self.fingerprint: str = facts["fingerprint"]
        self.kind: Kind = kind_named(facts["kind"])
        self.counts = Counts(**facts["counts"])
        files = {name: _mapped(folder / name, numbers) for name, numbers in _layout(self.kind, facts["id_type"]).items()}
        self._files = files
        self._ids, self._id_ends = files["ids"], files["id_ends"]
        self._text, self._text_ends = files["text"], files["text_ends"]
        self.field_keys: Keys = cast(Keys, files["keys"].reshape(-1, len(self.kind.fields)))  # of each text
        self.keys: Keys = _whole(self.field_keys, files["values"]) if self.kind.names else self.field_keys  # what makes a record its own
        self.documents: npt.NDArray[np.int64] = files["documents"]  # of each record, the document it stands in
        self.starts: npt.NDArray[np.int64] = files["starts"]  # of each document, its first record

    def __len__(self) -> int:
        return self.counts.records

    def tokens(self, row: int, field: str = "") -> npt.NDArray[np.int32]:
        """Token ids without special tokens."""
        start, end = self._span(self._id_ends, row, field)
        return np.asarray(self._ids[start:end], dtype=np.int32)

    def text(self, row: int, field: str = "") -> str:
        start, end = self._span(self._text_ends, row, field)
        return self._text[start:end].tobytes().decode("utf-8")

    @property
    def ids(self) -> npt.NDArray[Any]:
        """The token ids of all records, one text after another."""
        return self._ids

    def document(self, row: int) -> range:
        """The rows of the document that a row stands in."""
        number = int(self.documents[row])
        return range(int(self.starts[number]), int(self.starts[number + 1]) if number + 1 < len(self.starts) else len(self))

    def document_tokens(self) -> npt.NDArray[np.int64]:
        """How many tokens each document has, without special tokens."""
        ends = np.append(self.starts[1:], len(self)) * len(self.kind.fields)
        return np.diff(self._id_ends[ends - 1], prepend=0)

    def lengths(self) -> npt.NDArray[np.int64]:
        """How many tokens each text of each record has, [records, fields]."""
        return np.diff(self._id_ends, prepend=0).reshape(len(self), -1)

    def joined(self, row: int) -> npt.NDArray[np.int32]:
        """Token ids of the whole document that a row stands in."""
        return self.stretch(self.document(row))

    def stretch(self, rows: range) -> npt.NDArray[np.int32]:
        """Token ids of records that follow each other: they lie one after another already."""
        start, _ = self._span(self._id_ends, rows[0], self.kind.fields[0])
        _, end = self._span(self._id_ends, rows[-1], self.kind.fields[-1])
        return np.asarray(self._ids[start:end], dtype=np.int32)

    def reach(self, row: int, tokens: int) -> int:
        """How many records from ``row`` on have so many tokens together; those of its document, where they have fewer."""
        fields, last = len(self.kind.fields), self.document(row).stop
        start, _ = self._span(self._id_ends, row, self.kind.fields[0])
        ends = self._id_ends[(row + 1) * fields - 1 : last * fields : fields]
        return min(int(np.searchsorted(ends, start + tokens)) + 1, last - row)

    @cached_property
    def names(self) -> list[str]:
        """The different labels (or entities, or scores as written), sorted; the place of one is its number."""
        if self.kind.value is None:
            raise InputError(f"{self.kind.name} carry no score or label.")
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
        """Of each record, the number of its "label", "entity" or "score": the place of what it carries in ``names``."""
        if self.kind.value != value:
            bring = " or ".join(kind.name for kind in KINDS.values() if kind.value == value and not kind.in_text)
            raise InputError(f"{self.kind.name} carry no {value}; bring {bring}.")
        return self._files["values"]

    def hard_entities(self, row: int) -> npt.NDArray[np.int64]:
        self.numbers("entity")
        ends = self._files["other_ends"]
        return np.asarray(self._files["others"][ends[row - 1] if row else 0 : ends[row]], dtype=np.int64)

    @cached_property
    def types(self) -> list[str]:
        """The types of the entities, as written and sorted; the place of one is its number."""
        self.numbers("entity")
        return [name for name in (self.folder / "type_names").read_text(encoding="utf-8").split("\n") if name]

    def type_numbers(self) -> npt.NDArray[np.int32]:
        """Of each record, the number of its entity's type; −1 where the data name none."""
        self.numbers("entity")
        return self._files["types"]

    def release(self) -> None:
        """Give touched pages back to the system; they are read again when needed."""
        for array in self._files.values():
            pages = getattr(array, "_mmap", None)
            if pages is not None and hasattr(mmap, "MADV_DONTNEED"):
                pages.madvise(mmap.MADV_DONTNEED)

    def _span(self, ends: npt.NDArray[Any], row: int, field: str) -> tuple[int, int]:
        cell = int(row) * len(self.kind.fields) + (self.kind.fields.index(field) if field else 0)
        return (int(ends[cell - 1]) if cell else 0), int(ends[cell])


class Records:
    """Some rows of a corpus: what a method makes its views of."""

    def __init__(self, corpus: Corpus, rows: Sequence[int]) -> None:
        self.corpus = corpus
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def fields(self) -> tuple[str, ...]:
        return self.corpus.kind.fields

    def tokens(self, field: str = "") -> list[npt.NDArray[np.int32]]:
        return [self.corpus.tokens(row, field) for row in self.rows]

    def texts(self, field: str = "") -> list[str]:
        return [self.corpus.text(row, field) for row in self.rows]

    def values(self) -> list[str]:
        """Labels, entities or scores, as written."""
        names = self.corpus.names
        return [names[number] for number in self._of(self.corpus.numbers(self.corpus.kind.value or ""))]

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
        """Entities that are like a record's own and are not it; none where the data name none."""
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

    def joined(self) -> list[npt.NDArray[np.int32]]:
        """The whole document of each record as one sequence of token ids."""
        return [self.corpus.joined(row) for row in self.rows]

    def _of(self, array: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        return np.asarray(array[self.rows], dtype=np.int64)


def open_corpus(
    source: str | os.PathLike[str] | Sequence[Any],
    kinds: Sequence[str],
    tokenise: Tokenise,
    tokeniser_digest: str,
    vocabulary: int,
    columns: Sequence[str] | None = None,
    split: bool = False,
) -> Corpus:
    """The tokenised records of a file (or of Python values), built on first use and found again afterwards.

    ``kinds`` are tried in order: the first whose columns the file has is taken.
    """
    where, kind, records, content = find_records(source, kinds, columns, split)
    settings = json.dumps([kind.name, list(columns or ()), split])
    fingerprint = digest(FORMAT, content, tokeniser_digest, settings)
    folder = cache_folder() / "corpora" / fingerprint
    if not (folder / "corpus.json").is_file():
        with written_folder(folder, whole="corpus.json") as temporary:
            _build(temporary, records, kind, tokenise, vocabulary, fingerprint, where)
    return Corpus(folder)


def open_documents(sources: Sequence[str | os.PathLike[str]], tokenise: Tokenise, tokeniser_digest: str, vocabulary: int) -> Corpus:
    """The sentences of several files as one corpus of documents, none of which goes on from one file to the next."""
    fingerprint = digest(FORMAT, "documents", *(file_digest(source) for source in sources), tokeniser_digest)
    folder = cache_folder() / "corpora" / fingerprint
    if not (folder / "corpus.json").is_file():
        with written_folder(folder, whole="corpus.json") as temporary:
            where = ", ".join(map(str, sources))
            _build(temporary, read_sentences(sources), kind_named("documents"), tokenise, vocabulary, fingerprint, where)
    return Corpus(folder)


def _build(folder: Path, records: Iterable[Record], kind: Kind, tokenise: Tokenise, vocabulary: int, fingerprint: str, where: str) -> None:
    id_type = "<u2" if vocabulary <= 1 << 16 else "<i4"
    layout = _layout(kind, id_type)
    empty, row, id_end, text_end, other_end = 0, 0, 0, 0, 0
    documents, last_document = 0, -1
    seen: dict[str, int] = {}  # values in the order in which they come
    sorts: dict[str, int] = {}  # and their types
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(folder / name, "wb")) for name in layout}

        def write(name: str, numbers: Any) -> None:
            files[name].write(np.asarray(numbers).astype(layout[name]).tobytes())

        with bar("tokenising", None) as advance:
            for block in _blocks(records):
                full = [record for record in block if all(record.texts)]
                empty += len(block) - len(full)
                texts = [text for record in full for text in record.texts]
                if not texts:
                    continue
                ids, lengths = tokenise(texts)
                raw = [text.encode("utf-8") for text in texts]
                write("ids", ids)
                write("id_ends", id_end + np.cumsum(lengths))
                files["text"].write(b"".join(raw))
                ends = text_end + np.cumsum([len(item) for item in raw])
                write("text_ends", ends)
                write("keys", np.array([text_key(item) for item in raw], dtype="<u8"))
                of_document = np.array([record.document for record in full])
                begins = np.diff(of_document, prepend=last_document) != 0
                write("documents", documents - 1 + np.cumsum(begins))
                write("starts", row + np.flatnonzero(begins))
                documents, last_document = documents + int(begins.sum()), int(of_document[-1])
                if "values" in files:
                    write("values", [seen.setdefault(_value(record, kind, where), len(seen)) for record in full])
                if "others" in files:
                    write("others", [seen.setdefault(name, len(seen)) for record in full for name in record.others])
                    other_ends = other_end + np.cumsum([len(record.others) for record in full])
                    write("other_ends", other_ends)
                    other_end = int(other_ends[-1])
                if "types" in files:
                    write("types", [sorts.setdefault(record.type, len(sorts)) if record.type else -1 for record in full])
                row, id_end, text_end = row + len(full), id_end + int(lengths.sum()), int(ends[-1])
                advance(len(block))

    if not row:
        raise InputError(f"{where}: no records found; {empty:,} lines are empty.")
    if seen:
        _sort_names(folder, seen, [file for file in ("values", "others") if file in layout], "names")
    if "types" in layout:
        _sort_names(folder, sorts, ["types"], "type_names")
    keys = np.fromfile(folder / "keys", dtype="<u8").reshape(-1, len(kind.fields))
    distinct = len(np.unique(_whole(keys, np.fromfile(folder / "values", dtype="<i4")) if kind.names else _combined(keys)))
    counts = Counts(row, empty, row - distinct, distinct, documents)
    facts = {"fingerprint": fingerprint, "kind": kind.name, "id_type": id_type, "counts": asdict(counts)}
    (folder / "corpus.json").write_text(json.dumps(facts), encoding="utf-8")


def _layout(kind: Kind, id_type: str) -> dict[str, str]:
    """The files of the cache and the type of the numbers in each."""
    layout = {"ids": id_type, "id_ends": "<i8", "text": "u1", "text_ends": "<i8", "keys": "<u8", "documents": "<i8", "starts": "<i8"}
    if kind.value is not None:
        layout["values"] = "<i4"
        if kind.extra:
            layout |= {"others": "<i4", "other_ends": "<i8"}
        if kind.types:
            layout["types"] = "<i4"
    return layout


def _value(record: Record, kind: Kind, where: str) -> str:
    value = record.value or ""
    if not value:
        raise InputError(f"{where}:{record.line}: the {kind.value} is empty; fill it in, or take the row out.")
    if kind.value == "score" and not is_number(value):
        raise InputError(f"{where}:{record.line}: the score is '{value}', and a number was expected.")
    if value in record.others:
        raise InputError(f"{where}:{record.line}: '{value}' stands among its own hard negatives; take it out there.")
    return value


def is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _sort_names(folder: Path, seen: dict[str, int], files: Sequence[str], target: str) -> None:
    """Number the values by their sorted order instead of the order of the file; −1, which is none, stays."""
    names = sorted(seen)
    number = np.full(len(names) + 1, -1, dtype="<i4")
    number[[seen[name] for name in names]] = np.arange(len(names))
    for file in files:
        (folder / file).write_bytes(number[np.fromfile(folder / file, dtype="<i4")].tobytes())
    (folder / target).write_text("\n".join(names), encoding="utf-8")


def text_key(raw: bytes) -> int:
    """64 bits that stand for a text: equal texts have equal keys, in every process."""
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")


def _combined(keys: Keys) -> Keys:
    """One key a record."""
    result = keys[:, 0].copy()
    for column in range(1, keys.shape[1]):
        result = result * np.uint64(0x9E3779B97F4A7C15) + keys[:, column]
    return result


def _whole(keys: Keys, values: npt.NDArray[np.int32]) -> Keys:
    """[records, 1]: one key for the texts of a record and what it carries."""
    return _combined(np.column_stack([keys, values.astype(np.uint64)]))[:, None]


def _blocks(records: Iterable[Record]) -> Iterator[list[Record]]:
    iterator = iter(records)
    while block := list(islice(iterator, BLOCK)):
        yield block


def _mapped(path: Path, kind: str) -> npt.NDArray[Any]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r")
