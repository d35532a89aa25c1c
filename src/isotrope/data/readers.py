"""Rows and lines → records, one at a time; blank texts are given too."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from isotrope.data.packed_streams import unpacking
from isotrope.data.record_types import Record, RecordType, choose_columns, optional_columns
from isotrope.data.sentences import split_sentences
from isotrope.data.tables import Rows, cell_of, check_file, format_of, table_of
from isotrope.data.text_lines import LONGEST, lines_of
from isotrope.errors import InputError


def read(
    path: str | os.PathLike[str], record_type: RecordType, columns: Sequence[str] | None = None, split: bool = False
) -> Iterator[Record]:
    """Records of ``record_type`` in file order; blank texts are given too, for the caller to count.

    ``split`` cuts each text into sentences; only record types with one text field allow it. The documents of a table
    are always cut.
    """
    source = check_file(path)
    with unpacking(source):
        if format_of(source) == ".txt":
            refuse_columns(source, columns)
            records = _from_lines(source, record_type, str(path))
            yield from _split(records) if split else records
        else:
            header, rows = table_of(source)
            yield from from_rows(rows, header, record_type, columns, str(source), split)


def refuse_columns(path: Path, columns: Sequence[str] | None) -> None:
    """Of a plain text."""
    if columns:
        raise InputError(
            f"{path}: plain text has no columns, and {', '.join(columns)} was asked for; leave columns out, or give a "
            ".tsv, .csv, .jsonl or .parquet file.",
            setting="columns",
        )


def column(path: str | os.PathLike[str], name: str) -> list[str]:
    """One column of a table, row by row; empty strings where the table has no such column."""
    source = check_file(path)
    with unpacking(source):
        return [_folded(_text(row.get(name), str(source), line)) for line, row in table_of(source)[1]]


def from_rows(
    rows: Rows,
    header: Sequence[str],
    record_type: RecordType,
    columns: Sequence[str] | None,
    where: str,
    split: bool = False,
) -> Iterator[Record]:
    """Records of a table. A list in the only column is a document or a dialogue already cut."""
    names = choose_columns(header, record_type, columns, where)
    rows = with_fields(rows, [name for name in names if name not in header], where)
    if split and len(record_type.fields) != 1:
        raise InputError(
            f"{where}: splitting into sentences works for one text column; {record_type.name} have "
            f"{len(record_type.fields)}."
        )
    # Without ``columns`` the names stay open: a .jsonl file may bring the extra column later than in its first row.
    extra = names[record_type.width :] or tuple(
        name for name in record_type.extra if columns is None and name not in names
    )
    typed, paged = (
        optional_columns(header, record_type, columns, known) or (known if columns is None else ())
        for known in (record_type.types, record_type.pages)
    )
    if record_type.name == "dialogues":
        utterances = _utterances(rows, names[0], extra, where)
        yield from _split(utterances) if split else utterances
        return
    for number, (line, row) in enumerate(rows):
        cells = [cell_of(row, name) for name in names[: record_type.width]]
        value = None if record_type.value is None or record_type.in_text else _folded(_text(cells[-1], where, line))
        others = _listed(_first(row, extra), where, line) if extra else ()
        sort, page = (_folded(_text(_first(row, aside), where, line)) for aside in (typed, paged))
        for texts in _texts_of(cells, record_type, split, where, line):
            yield Record(texts, value, number, line, others, sort, page)


def _texts_of(
    cells: Sequence[Any], record_type: RecordType, split: bool, where: str, line: int
) -> list[tuple[str, ...]]:
    """The texts of a row's records: one record, or one for each sentence of a document or of a list."""
    _check_no_object(cells, where, line)
    if record_type.width == 1 and isinstance(cells[0], list | tuple):
        sentences = [_folded(_text(part, where, line)) for part in cells[0]]
    elif split or record_type.name == "documents":
        sentences = split_sentences(_text(cells[0], where, line))
    else:
        return [tuple(_folded(_text(cell, where, line)) for cell in cells[: len(record_type.fields)])]
    return [(sentence,) for sentence in sentences or [""]]


def joined_text(cells: Sequence[Any], where: str, line: int) -> str:
    """The texts of several cells as one; those of a list too."""
    _check_no_object(cells, where, line)
    parts = [part for cell in cells for part in (cell if isinstance(cell, list | tuple) else [cell])]
    return _folded(" ".join(_text(part, where, line) for part in parts))


def _check_no_object(cells: Sequence[Any], where: str, line: int) -> None:
    for cell in cells:
        if isinstance(cell, dict) and cell:
            raise InputError(
                f"{where}:{line}: a text was expected, and a dict found; name one of its fields, such as "
                f"COLUMN.{next(iter(cell))}."
            )


def with_fields(rows: Rows, fields: Sequence[str], where: str) -> Rows:
    """The rows; refused where the first object lacks a field (``ticket.body``) that was asked for. A null lacks none:
    the next row decides."""
    unseen = set(fields)
    for line, row in rows:
        for name in [name for name in fields if name in unseen]:
            found = _holds(row, name) if name.partition(".")[0] in row else None
            if found is False:
                above = cell_of(row, name.rpartition(".")[0])
                there = f"its fields: {', '.join(map(repr, above))}" if isinstance(above, dict) else "no object there"
                raise InputError(f"{where}:{line}: no field '{name}'; {there}.")
            unseen -= {name} if found else set()
        yield line, row


def _holds(row: Mapping[str, Any], name: str) -> bool | None:
    """Whether there is such a field, whatever it holds; None where a null stands in place of its object."""
    if name in row:
        return True
    column, _, field = name.partition(".")
    above = row.get(column)
    if above is None and column in row:
        return None
    return isinstance(above, Mapping) and _holds(above, field)


def _utterances(rows: Rows, column: str, named_by: Sequence[str], where: str) -> Iterator[Record]:
    """A row is a whole dialogue, as a list, or one utterance and the name of its dialogue."""
    number, last, seen = -1, "", set()
    for line, row in rows:
        cell = cell_of(row, column)
        if isinstance(cell, list | tuple):
            number, last = number + 1, ""
            for part in cell or [""]:
                yield Record((_folded(_text(part, where, line)),), None, number, line)
            continue
        text, name = (_folded(_text(found, where, line)) for found in (cell, _first(row, named_by)))
        if text and not name:
            raise InputError(
                f"{where}:{line}: an utterance that names no dialogue; give a column dialogue_id, or a list of "
                "utterances a row, or a .txt file with a blank line between dialogues."
            )
        if text and name != last:
            if name in seen:
                raise InputError(
                    f"{where}:{line}: dialogue '{name}' goes on here after another one began; "
                    "sort the rows by dialogue."
                )
            seen.add(name)
            number, last = number + 1, name
        yield Record((text,), None, number, line)


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((cell for name in names if (cell := cell_of(row, name)) is not None), None)


def _listed(cell: Any, where: str, line: int) -> tuple[str, ...]:
    """The parts of a list, or of a text with | between them; each once."""
    parts = cell if isinstance(cell, list | tuple) else _text(cell, where, line).split("|")
    return tuple(dict.fromkeys(name for part in parts if (name := _folded(_text(part, where, line)))))


def _text(cell: Any, where: str, line: int) -> str:
    if cell is None:
        return ""
    if isinstance(cell, list | tuple | dict):
        raise InputError(f"{where}:{line}: a text was expected, and a {type(cell).__name__} found.")
    if isinstance(cell, float) and not math.isfinite(cell):
        raise InputError(f"{where}:{line}: a text or a number was expected, and {cell} found; leave the cell empty.")
    try:
        text = cell.decode("utf-8") if isinstance(cell, bytes) else str(cell)
        text.encode("utf-8")  # JSON can spell half a character (\ud83d), which no tokenizer takes
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise InputError(
            f"{where}:{line}: the text holds half a character or bytes that are not UTF-8 ({error.reason})."
        ) from error
    if len(text) > LONGEST:
        raise InputError(f"{where}:{line}: the text is longer than {LONGEST:,} characters; break it into sentences.")
    return text


def _folded(text: str) -> str:
    return " ".join(text.split())


def _split(records: Iterable[Record]) -> Iterator[Record]:
    for record in records:
        for sentence in split_sentences(record.texts[0]) or [""]:
            yield record._replace(texts=(sentence,))


def _from_lines(path: Path, record_type: RecordType, where: str) -> Iterator[Record]:
    if record_type.width != 1:
        wanted = "/".join(record_type.known[0])
        raise InputError(
            f"{where}: plain text holds one sentence a line, and {record_type.name} were asked for; "
            f"give a .tsv, .csv, .jsonl or .parquet file with columns {wanted}."
        )
    document = 0
    for number, line in lines_of(path):
        text = _folded(line)
        if not text:
            document += 1
        yield Record((text,), None, document, number)
