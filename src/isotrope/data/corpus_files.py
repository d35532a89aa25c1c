"""The files of a corpus and how they are made: records are tokenised block by block and written as they come."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from isotrope.data.record_types import Record, RecordType
from isotrope.errors import InputError
from isotrope.progress import bar

FORMAT = "4"  # of the cache; raise it when the layout below changes
BLOCK = 16_384  # records tokenised in one call
Keys = npt.NDArray[np.uint64]


class Tokenizer(Protocol):
    """What a corpus asks of a tokenizer; ``TextTokenizer`` is one."""

    @property
    def vocabulary(self) -> int: ...
    def fingerprint(self) -> str: ...
    def flat(self, texts: list[str]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """All ids one after another, and the length of each text."""


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


def build(
    folder: Path, records: Iterable[Record], record_type: RecordType, tokenizer: Tokenizer, fingerprint: str, where: str
) -> None:
    id_type = "<u2" if tokenizer.vocabulary <= 1 << 16 else "<i4"
    layout = layout_of(record_type, id_type)
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
                ids, lengths = tokenizer.flat(texts)
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
                    write("values", [seen.setdefault(_value(record, record_type, where), len(seen)) for record in full])
                if "others" in files:
                    write("others", [seen.setdefault(name, len(seen)) for record in full for name in record.others])
                    other_ends = other_end + np.cumsum([len(record.others) for record in full])
                    write("other_ends", other_ends)
                    other_end = int(other_ends[-1])
                if "types" in files:
                    write(
                        "types", [sorts.setdefault(record.type, len(sorts)) if record.type else -1 for record in full]
                    )
                row, id_end, text_end = row + len(full), id_end + int(lengths.sum()), int(ends[-1])
                advance(len(block))

    if not row:
        raise InputError(f"{where}: no records found; {empty:,} lines are empty.")
    if seen:
        _sort_names(folder, seen, [file for file in ("values", "others") if file in layout], "names")
    if "types" in layout:
        _sort_names(folder, sorts, ["types"], "type_names")
    keys = np.fromfile(folder / "keys", dtype="<u8").reshape(-1, len(record_type.fields))
    distinct = len(
        np.unique(
            whole_keys(keys, np.fromfile(folder / "values", dtype="<i4")) if record_type.names else _combined(keys)
        )
    )
    counts = Counts(row, empty, row - distinct, distinct, documents)
    facts = {"fingerprint": fingerprint, "record_type": record_type.name, "id_type": id_type, "counts": asdict(counts)}
    (folder / "corpus.json").write_text(json.dumps(facts), encoding="utf-8")


def layout_of(record_type: RecordType, id_type: str) -> dict[str, str]:
    """The files of the cache and the type of the numbers in each."""
    layout = {
        "ids": id_type,
        "id_ends": "<i8",
        "text": "u1",
        "text_ends": "<i8",
        "keys": "<u8",
        "documents": "<i8",
        "starts": "<i8",
    }
    if record_type.value is not None:
        layout["values"] = "<i4"
        if record_type.extra:
            layout |= {"others": "<i4", "other_ends": "<i8"}
        if record_type.types:
            layout["types"] = "<i4"
    return layout


def _value(record: Record, record_type: RecordType, where: str) -> str:
    value = record.value or ""
    if not value:
        raise InputError(f"{where}:{record.line}: the {record_type.value} is empty; fill it in, or take the row out.")
    if record_type.value == "score" and not is_number(value):
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


def whole_keys(keys: Keys, values: npt.NDArray[np.int32]) -> Keys:
    """[records, 1]: one key for the texts of a record and what it carries."""
    return _combined(np.column_stack([keys, values.astype(np.uint64)]))[:, None]


def _blocks(records: Iterable[Record]) -> Iterator[list[Record]]:
    iterator = iter(records)
    while block := list(islice(iterator, BLOCK)):
        yield block
