"""Which of the given files each method is trained on: the first whose records are of a type that it takes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from isotrope.comparison.terms import Data
from isotrope.data.record_types import RECORD_TYPES
from isotrope.data.sources import find_records, fits
from isotrope.data.tables import check_file, header_of
from isotrope.errors import InputError


@dataclass(frozen=True)
class TextFile:
    """``record_type`` is what the caller called it; where it is None, the columns decide."""

    path: str
    record_type: str | None = None

    def holds(self, record_type: str) -> bool:
        if self.record_type is not None:
            return self.record_type == record_type
        return fits(self.path, record_type)

    @property
    def described(self) -> str:
        header = header_of(self.path)
        return "plain text" if header is None else f"a table with columns {', '.join(header)}"


def text_files(data: Data) -> list[TextFile]:
    """The files, checked: each is there, and can be what it is called."""
    if isinstance(data, Mapping):
        found = [TextFile(str(path), record_type) for record_type, path in data.items()]
    else:
        found = [_text_file(str(given)) for given in ([data] if isinstance(data, str | os.PathLike) else data)]
    if not found:
        raise InputError("No data was given: name at least one file.")
    for file in found:
        check_file(file.path)
        if file.record_type is not None and not fits(file.path, file.record_type):
            raise InputError(f"{file.path}: {file.described} cannot be {file.record_type}.")
    return found


def choose_text(label: str, record_types: Sequence[str], files: Sequence[TextFile]) -> str:
    """The path of the first file that fits; one that was called by the record type goes before one that may be it."""
    for record_type in record_types:
        fitting = [file for file in files if file.holds(record_type)]
        named = [file for file in fitting if file.record_type is not None]
        if fitting:
            return (named or fitting)[0].path
    given = ", ".join(f"{Path(file.path).name} ({file.record_type or file.described})" for file in files)
    columns = "/".join(RECORD_TYPES[record_types[0]].known[0])
    raise InputError(
        f"{label} needs {' or '.join(record_types)}, and none of the files is that: {given}; "
        f"add one, with columns such as {columns}."
    )


def read_through(path: str, record_types: Sequence[str]) -> None:
    """Refuse a text that no run could read to its end, or that holds no record."""
    found = find_records(path, record_types, None, split=False)
    if not sum(all(record.texts) for record in found.records):
        raise InputError(f"{path}: no {found.record_type.name} found.")


def _text_file(given: str) -> TextFile:
    """RECORD_TYPE=FILE, or a file alone."""
    record_type, equals, path = given.partition("=")
    return TextFile(path, record_type) if equals and record_type in RECORD_TYPES else TextFile(given)
