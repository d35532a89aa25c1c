"""A file or a list of Python values → records of the first record type that fits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from isotrope.data.emoji import labelled_by_emoji
from isotrope.data.readers import from_rows, read
from isotrope.data.record_types import Record, RecordType, choose_columns, record_type_named
from isotrope.data.tables import check_file, check_unchanged, content_of, header_of
from isotrope.errors import InputError
from isotrope.files import digest

LIST = "the given list"
LABELLED = "labelled-pairs"


class Source(NamedTuple):
    """Records and where they come from."""

    where: str  # as messages name it
    record_type: RecordType
    records: Iterable[Record]
    content: str  # a digest of what was read


def find_records(
    source: str | os.PathLike[str] | Sequence[Any],
    record_types: Sequence[str],
    columns: Sequence[str] | None,
    split: bool,
) -> Source:
    """``record_types`` are tried in order: the first whose columns are there is taken."""
    if isinstance(source, str | os.PathLike):
        found = _in_file(source, record_types, columns, split)
    elif isinstance(source, Mapping):
        raise InputError("data is one dictionary; give a list of dictionaries, one a record, with the columns as keys.")
    else:
        found = _in_memory(list(source), record_types, columns, split)
    return found._replace(records=labelled_by_emoji(found.records, found.where)) if found.record_type.in_text else found


def read_sentences(
    sources: Sequence[str | os.PathLike[str]], contents: Sequence[str] | None = None
) -> Iterator[Record]:
    """Sentences of all files in order, documents numbered throughout.

    With ``contents``, a digest of each file (``content_of``), a file that changes meanwhile is refused.
    """
    first = 0
    for number, source in enumerate(sources):
        last = first
        records = read(source, record_type_named("documents"))
        for record in records if contents is None else unchanged(Path(source), contents[number], records):
            last = first + record.document
            if record.texts[0]:
                yield record._replace(document=last)
        first = last + 1


def fits(path: str | os.PathLike[str], record_type: str) -> bool:
    """Whether a file can be read as this record type: plain text where a record is one text, else by its columns."""
    header = header_of(path)
    if header is None:
        return record_type_named(record_type).width == 1
    try:
        choose_columns(header, record_type_named(record_type), None, str(path))
    except InputError:
        return False
    return True


def _in_file(
    source: str | os.PathLike[str], record_types: Sequence[str], columns: Sequence[str] | None, split: bool
) -> Source:
    path = check_file(source)
    header = header_of(path)
    record_type = (
        _of_width(1, record_types) or record_type_named(record_types[0])
        if header is None
        else _that_fits(header, record_types, columns, str(path))
    )
    if (
        record_type.value == "score"
        and LABELLED in record_types
        and fits(path, LABELLED)
        and _begins_with_a_word(read(path, record_type_named(LABELLED)))
    ):
        record_type = record_type_named(LABELLED)
    content = content_of(path)
    return Source(str(source), record_type, unchanged(path, content, read(path, record_type, columns, split)), content)


def unchanged(path: Path, content: str, records: Iterable[Record]) -> Iterator[Record]:
    """The records of a file, and ``check_unchanged`` behind the last."""
    yield from records
    check_unchanged(path, content)


def _in_memory(rows: list[Any], record_types: Sequence[str], columns: Sequence[str] | None, split: bool) -> Source:
    if not rows:
        raise InputError("The given list of records is empty.")
    if all(isinstance(row, dict) for row in rows):
        odd = next((name for row in rows for name in row if not isinstance(name, str)), None)
        if odd is not None:
            raise InputError(f"{LIST}: the key {odd!r} of a dictionary is not a string; name columns by strings.")
        record_type, named = _that_fits(tuple(rows[0]), record_types, columns, LIST), rows
    else:
        columns = None
        record_type, names = _without_names(rows, record_types)
        named = [dict(zip(names, [row] if len(names) == 1 else row, strict=False)) for row in rows]
    records = from_rows(iter(enumerate(named, 1)), tuple(named[0]), record_type, columns, LIST, split)
    return Source(LIST, record_type, records, digest(json.dumps(named, default=str)))


def _without_names(rows: list[Any], record_types: Sequence[str]) -> tuple[RecordType, tuple[str, ...]]:
    """The record type of a list of strings or tuples, and the columns they stand for.

    A list of lists can hold whole documents or dialogues.
    """
    if all(isinstance(row, str) for row in rows):
        record_type = _of_width(1, record_types)
        if record_type is not None:
            return record_type, record_type.known[0][:1]
    if all(isinstance(row, tuple | list) for row in rows):
        whole = next((record_type_named(name) for name in record_types if record_type_named(name).whole), None)
        if whole is not None:
            return whole, whole.known[0][:1]
        width = len(rows[0])
        odd = next((number for number, row in enumerate(rows, 1) if len(row) != width), None)
        if odd is not None:
            raise InputError(
                f"The given list: record {odd} has {len(rows[odd - 1])} fields, and the first has {width}."
            )
        record_type = _of_width(width, record_types)
        if record_type is None:
            raise InputError(f"The given list holds tuples of {width}; {' or '.join(record_types)} were wanted.")
        return record_type, (*(record_type.spoken or record_type.known[0]), *record_type.extra)
    wanted = "/".join(record_type_named(record_types[0]).spoken or record_type_named(record_types[0]).known[0])
    raise InputError(
        f"{record_types[0]} were wanted; give a list of tuples, or of dictionaries with the keys {wanted}."
    )


def _begins_with_a_word(records: Iterable[Record]) -> bool:
    """A column called label can hold scores or words."""
    value = next((record.value for record in records if record.value), "0")
    try:
        float(value)
    except ValueError:
        return True
    return False


def _of_width(width: int, record_types: Sequence[str]) -> RecordType | None:
    for record_type in map(record_type_named, record_types):
        if record_type.width <= width <= record_type.width + bool(record_type.extra):
            return record_type
    return None


def _that_fits(
    header: Sequence[str], record_types: Sequence[str], columns: Sequence[str] | None, where: str
) -> RecordType:
    for name in record_types:
        try:
            choose_columns(header, record_type_named(name), columns, where)
        except InputError:
            continue
        return record_type_named(name)
    choose_columns(header, record_type_named(record_types[0]), columns, where)  # raises: it says what is missing
    raise AssertionError("unreachable")
