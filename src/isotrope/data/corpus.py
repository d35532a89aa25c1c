"""Records on disk, tokenised once: memory-mapped, keyed by the content of the file and the tokeniser."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from isotrope.data.kinds import Kind, Record, choose_columns, kind_named
from isotrope.data.readers import PACKED, check_file, format_of, from_rows, header_of, read
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, file_digest, written_folder
from isotrope.progress import bar

FORMAT = "1"  # of the cache; raise it when the layout below changes
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
        width = len(self.kind.fields)
        self._ids = _mapped(folder / "ids", facts["id_type"])
        self._id_ends = _mapped(folder / "id_ends", "<i8")
        self._text = _mapped(folder / "text", "u1")
        self._text_ends = _mapped(folder / "text_ends", "<i8")
        self.keys: Keys = cast(Keys, _mapped(folder / "keys", "<u8").reshape(-1, width))
        self.documents: npt.NDArray[np.int64] = _mapped(folder / "documents", "<i8")
        self.values: list[str] | None = facts["values"]

    def __len__(self) -> int:
        return self.counts.records

    def tokens(self, row: int, field: str = "") -> npt.NDArray[np.int32]:
        """Token ids without special tokens."""
        start, end = self._span(self._id_ends, row, field)
        return np.asarray(self._ids[start:end], dtype=np.int32)

    def text(self, row: int, field: str = "") -> str:
        start, end = self._span(self._text_ends, row, field)
        return self._text[start:end].tobytes().decode("utf-8")

    def release(self) -> None:
        """Give touched pages back to the system; they are read again when needed."""
        for array in (self._ids, self._id_ends, self._text, self._text_ends, self.keys, self.documents):
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
        if self.corpus.values is None:
            raise InputError(f"{self.corpus.kind.name} carry no score or label.")
        return [self.corpus.values[row] for row in self.rows]


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
    if isinstance(source, str | os.PathLike):
        where = str(source)
        kind, records, content = _in_file(source, kinds, columns, split)
    else:
        where = "the given list"
        kind, records, content = _in_memory(source, kinds, columns, split)
    settings = json.dumps([kind.name, list(columns or ()), split])
    fingerprint = digest(FORMAT, content, tokeniser_digest, settings)
    folder = cache_folder() / "corpora" / fingerprint
    if not (folder / "corpus.json").is_file():
        with written_folder(folder) as temporary:
            _build(temporary, records, kind, tokenise, vocabulary, fingerprint, where)
    return Corpus(folder)


def _in_file(
    source: str | os.PathLike[str], kinds: Sequence[str], columns: Sequence[str] | None, split: bool
) -> tuple[Kind, Iterable[Record], str]:
    path = check_file(source)
    header = header_of(path)
    kind = _first_of_width(1, kinds) or kind_named(kinds[0]) if header is None else _first_that_fits(header, kinds, columns, str(path))
    packing = path.suffix.lower() if path.suffix.lower() in PACKED else ""
    content = digest(file_digest(path), format_of(path), packing)  # the same bytes mean other records under another suffix
    return kind, read(path, kind, columns, split), content


def _in_memory(
    source: Sequence[Any], kinds: Sequence[str], columns: Sequence[str] | None, split: bool
) -> tuple[Kind, Iterable[Record], str]:
    rows = list(source)
    if not rows:
        raise InputError("The given list of records is empty.")
    kind: Kind | None
    if all(isinstance(row, dict) for row in rows):
        kind, named = _first_that_fits(tuple(rows[0]), kinds, columns, "the given list"), rows
    elif all(isinstance(row, str) for row in rows) and (kind := _first_of_width(1, kinds)):
        columns, named = None, [{kind.known[0][0]: row} for row in rows]
    elif all(isinstance(row, tuple | list) for row in rows):
        width = len(rows[0])
        odd = next((number for number, row in enumerate(rows, 1) if len(row) != width), None)
        if odd is not None:
            raise InputError(f"The given list: record {odd} has {len(rows[odd - 1])} fields, and the first has {width}.")
        kind = _first_of_width(width, kinds)
        if kind is None:
            raise InputError(f"The given list holds tuples of {width}; {' or '.join(kinds)} were wanted.")
        columns, named = None, [dict(zip(kind.known[0], row, strict=True)) for row in rows]
    else:
        raise InputError(
            f"{kinds[0]} were wanted; give a list of tuples, or of dictionaries with the keys {'/'.join(kind_named(kinds[0]).known[0])}."
        )
    content = digest(json.dumps(named, default=str))
    return kind, from_rows(iter(enumerate(named, 1)), tuple(named[0]), kind, columns, "the given list", split), content


def _first_of_width(width: int, kinds: Sequence[str]) -> Kind | None:
    return next((kind_named(name) for name in kinds if kind_named(name).width == width), None)


def _first_that_fits(header: Sequence[str], kinds: Sequence[str], columns: Sequence[str] | None, where: str) -> Kind:
    for name in kinds:
        try:
            choose_columns(header, kind_named(name), columns, where)
        except InputError:
            continue
        return kind_named(name)
    choose_columns(header, kind_named(kinds[0]), columns, where)  # says what is missing
    raise AssertionError("unreachable")


def _build(folder: Path, records: Iterable[Record], kind: Kind, tokenise: Tokenise, vocabulary: int, fingerprint: str, where: str) -> None:
    id_type = "<u2" if vocabulary <= 1 << 16 else "<i4"
    empty, id_end, text_end = 0, 0, 0
    documents, last_document = 0, None
    values: list[str] | None = [] if kind.value is not None else None
    names = ("ids", "id_ends", "text", "text_ends", "keys", "documents")
    with ExitStack() as stack:
        files = {name: stack.enter_context(open(folder / name, "wb")) for name in names}
        with bar("tokenising", None) as advance:
            for block in _blocks(records):
                full = [record for record in block if all(record.texts)]
                empty += len(block) - len(full)
                texts = [text for record in full for text in record.texts]
                if not texts:
                    continue
                ids, lengths = tokenise(texts)
                raw = [text.encode("utf-8") for text in texts]
                files["ids"].write(ids.astype(id_type).tobytes())
                files["id_ends"].write((id_end + np.cumsum(lengths)).astype("<i8").tobytes())
                files["text"].write(b"".join(raw))
                ends = text_end + np.cumsum([len(item) for item in raw])
                files["text_ends"].write(ends.astype("<i8").tobytes())
                files["keys"].write(np.array([text_key(item) for item in raw], dtype="<u8").tobytes())
                of_document = [record.document for record in full]
                files["documents"].write(np.array(of_document, dtype="<i8").tobytes())
                documents += sum(a != b for a, b in zip(of_document, [last_document, *of_document], strict=False))
                last_document = of_document[-1]
                if values is not None:
                    values.extend(str(record.value) for record in full)
                id_end, text_end = id_end + int(lengths.sum()), int(ends[-1])
                advance(len(block))

    keys = np.fromfile(folder / "keys", dtype="<u8").reshape(-1, len(kind.fields))
    if not len(keys):
        raise InputError(f"{where}: no records found; {empty:,} lines are empty.")
    distinct = len(np.unique(_combined(keys)))
    counts = Counts(len(keys), empty, len(keys) - distinct, distinct, documents)
    facts = {
        "fingerprint": fingerprint,
        "kind": kind.name,
        "id_type": id_type,
        "counts": asdict(counts),
        "values": values,
    }
    (folder / "corpus.json").write_text(json.dumps(facts), encoding="utf-8")


def text_key(raw: bytes) -> int:
    """64 bits that stand for a text: equal texts have equal keys, in every process."""
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")


def _combined(keys: Keys) -> Keys:
    """One key a record."""
    result = keys[:, 0].copy()
    for column in range(1, keys.shape[1]):
        result = result * np.uint64(0x9E3779B97F4A7C15) + keys[:, column]
    return result


def _blocks(records: Iterable[Record]) -> Iterator[list[Record]]:
    iterator = iter(records)
    while block := list(islice(iterator, BLOCK)):
        yield block


def _mapped(path: Path, kind: str) -> npt.NDArray[Any]:
    if path.stat().st_size == 0:
        return np.empty(0, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r")
