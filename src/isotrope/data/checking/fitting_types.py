"""The record types that a file can be read as: by its columns, and where these leave it open, by its first rows.

The richest comes first, the one that uses most columns: a table with the columns text and label holds labelled records,
and also sentences for a method that needs no labels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from isotrope.data.corpus_files import is_number
from isotrope.data.emoji import EMOJI
from isotrope.data.packed_streams import unpacking
from isotrope.data.readers import read
from isotrope.data.record_types import RECORD_TYPES, RecordType, choose_columns, record_type_named
from isotrope.data.tables import header_of, table_of
from isotrope.errors import InputError

LOOKED_AT = 1000  # records in which emoji are looked for


def fitting_types(path: Path, columns: Sequence[str] | None) -> list[str]:
    """Names of record types, the richest first; refused where none fits."""
    header = header_of(path)
    ranked = sorted(RECORD_TYPES.values(), key=lambda one: -one.width)
    found = [one for one in ranked if _has_columns(header, one, columns) and _has_content(path, header, one, columns)]
    if not found:
        assert header is not None  # plain text is always sentences
        if columns is not None:
            choose_columns(header, record_type_named("sentences"), columns, str(path))  # says which is missing
        raise InputError(
            f"{path}: columns found: {', '.join(map(repr, header))}; no record type has these; name those of the "
            f"texts (and of the label or score, last) as `columns`, such as {_longest_column(path, header)}."
        )
    return [one.name for one in found]


def _longest_column(path: Path, header: Sequence[str]) -> str:
    """The column with the longest text in the first row, as it is typed; a field of an object by its dotted name."""
    with unpacking(path):
        row = next((row for _, row in table_of(path)[1]), {})
    name = max(((len(cell), name) for name, cell in _flat(row) if isinstance(cell, str)), default=(0, header[0]))[1]
    return f"'\"{name}\"'" if "," in name else f"'{name}'"


def _flat(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, cell in row.items():
        if isinstance(cell, Mapping):
            yield from ((f"{name}.{field}", inner) for field, inner in _flat(cell))
        else:
            yield name, cell


def common_types(paths: Sequence[Path], columns: Sequence[str] | None) -> list[str]:
    """The record types that every file can be read as."""
    by_file = [fitting_types(path, columns) for path in paths]
    common = [name for name in by_file[0] if all(name in types for types in by_file)]
    if not common:
        odd = next(number for number, types in enumerate(by_file) if not set(types) & set(by_file[0]))
        raise InputError(
            f"{paths[0]} holds {' or '.join(by_file[0])}, and {paths[odd]} {' or '.join(by_file[odd])}; "
            "files of different record types are checked one by one."
        )
    return common


def columns_of(path: Path, record_type: RecordType, columns: Sequence[str] | None) -> list[str]:
    """The columns that are read; none in plain text."""
    header = header_of(path)
    return [] if header is None else list(choose_columns(header, record_type, columns, str(path)))


def unread_columns(path: Path, record_type: RecordType, columns: Sequence[str] | None) -> list[str]:
    """The columns that nothing is read of; none in plain text."""
    read_names = {*columns_of(path, record_type, columns), *(name.partition(".")[0] for name in columns or ())}
    known = {*record_type.extra, *record_type.types, *record_type.pages} if columns is None else set()
    return [name for name in header_of(path) or () if name not in read_names and name.strip().lower() not in known]


def _has_columns(header: Sequence[str] | None, record_type: RecordType, columns: Sequence[str] | None) -> bool:
    if header is None:
        return record_type.width == 1
    try:
        choose_columns(header, record_type, columns, "")
    except InputError:
        return False
    return True


def _has_content(
    path: Path, header: Sequence[str] | None, record_type: RecordType, columns: Sequence[str] | None
) -> bool:
    if record_type.name == "dialogues" and header is not None:
        return _names_dialogues(path, header, record_type, columns)
    if record_type.value == "score":
        value = next((one.value for one in read(path, record_type, columns) if one.value), "0")
        return is_number(value)
    if record_type.in_text:
        return any(
            not text.isascii() and EMOJI.search(text)
            for record in islice(read(path, record_type, columns), LOOKED_AT)
            for text in record.texts
        )
    return True


def _names_dialogues(path: Path, header: Sequence[str], record_type: RecordType, columns: Sequence[str] | None) -> bool:
    """Whether the rows of a table say which utterances belong together: a list a row, or the name of the dialogue."""
    if columns is None and any(name.strip().lower() in record_type.extra for name in header):
        return True
    if columns is not None and len(columns) > record_type.width:
        return True
    name = choose_columns(header, record_type, columns, str(path))[0]
    with unpacking(path):
        first = next(iter(table_of(path)[1]), None)
    return first is not None and isinstance(first[1].get(name), list | tuple)
