"""Texts with several labels: joined by a bar (sport|music), or a list of a .jsonl or .parquet row, or of a row in
memory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from isotrope.data.packed_streams import unpacking
from isotrope.data.readers import from_rows
from isotrope.data.record_types import Record, choose_columns, record_type_named
from isotrope.data.sentence_files import records_of
from isotrope.data.tables import cell_of, check_file, format_of, table_of
from isotrope.errors import InputError
from isotrope.heads.label_sets import JOINT

LISTED = (".jsonl", ".parquet")  # formats that have lists
LABEL = "label"
SPELLED = ("labels", LABEL)  # where a row has a list, its column may say that there are several


def labelled_records(source: str | os.PathLike[str] | Sequence[Any], columns: Sequence[str] | None) -> Iterator[Record]:
    """Records whose value is their labels joined by a bar; '' where there are none."""
    if not isinstance(source, str | os.PathLike):
        named = None if columns is None else list(columns)[-1]
        given = [_joined_row(row, f"row {number}", named) for number, row in enumerate(source, 1)]
        yield from records_of(given, "labelled", columns)[1]
        return
    path = Path(source)
    if format_of(check_file(path)) not in LISTED:
        yield from records_of(source, "labelled", columns)[1]
        return
    kind = record_type_named("labelled")
    with unpacking(path):
        header, table = table_of(path)
        renamed = columns is None and LABEL not in header and SPELLED[0] in header
        names = tuple(LABEL if renamed and name == SPELLED[0] else name for name in header)
        label = choose_columns(names, kind, columns, str(path))[-1]
        found = SPELLED[0] if renamed else label
        rows = ((line, {**row, label: _joined(cell_of(row, found), f"{path}:{line}")}) for line, row in table)
        yield from from_rows(rows, names, kind, columns, str(path))


def _joined_row(row: Any, where: str, named: str | None) -> Any:
    if isinstance(row, dict):
        name = named or next((name for name in SPELLED if name in row), LABEL)
        others = {key: cell for key, cell in row.items() if key != name}
        return {**others, named or LABEL: _joined(row.get(name), where)}
    return (*row[:-1], _joined(row[-1], where)) if isinstance(row, tuple | list) and len(row) > 1 else row


def _joined(cell: Any, where: str) -> Any:
    """A list as one text; a label that holds a bar would be two."""
    if not isinstance(cell, list | tuple):
        return cell
    for part in cell:
        if isinstance(part, list | tuple | dict) or part is None or JOINT in str(part):
            raise InputError(f"{where}: {str(part)[:60]!r} is no label; labels in a list are texts without a {JOINT}.")
    return JOINT.join(str(part) for part in cell)
