"""Data files → lines of text or rows of a table.

Formats are .txt, .tsv, .csv, .jsonl and .parquet, plain or packed with gzip or xz.
"""

from __future__ import annotations

import csv
import errno
import io
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from isotrope.data.json_rows import parse_row
from isotrope.data.packed_streams import opened, unpacking
from isotrope.data.prose_blocks import PROSE
from isotrope.data.prose_files import holds_prose, is_prose, prose_files
from isotrope.data.prose_text import prose_text
from isotrope.data.text_lines import LONGEST, lines_of
from isotrope.errors import InputError
from isotrope.files import check_name, digest, file_digest

FORMATS = (".txt", ".tsv", ".csv", ".jsonl", ".parquet")
PACKED = (".gz", ".xz")
SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}  # of a .csv; the first that its header has
Rows = Iterator[tuple[int, dict[str, Any]]]  # line number, row by column


def format_of(path: Path) -> str:
    """The format a file's name states, without .gz or .xz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in FORMATS:
        raise InputError(
            f"{path}: unknown file type; give one of {', '.join(FORMATS)}, or one of these with .gz or .xz; "
            f"or documents: {', '.join(PROSE)}, or a folder."
        )
    return suffixes[-1]


def check_file(path: str | os.PathLike[str]) -> Path:
    """The path of a readable, non-empty data file, or a sentence that says what it is instead.

    Of a folder or a file of documents, the path of the text that is made of them (prose_text.py).
    """
    _check_path(path)
    found = Path(path)
    check_name(found)
    if not os.path.isdir(found):
        check_readable(found)
    if is_prose(found):
        return prose_text(found)
    format_of(found)
    return found


def check_source(path: str | os.PathLike[str]) -> Path:
    """As ``check_file``, for who reads documents as they are: no text is made of them."""
    _check_path(path)
    if not is_prose(path):
        return check_file(path)
    found = Path(path)
    check_name(found)
    if not os.path.isdir(found):
        check_readable(found)
    return prose_files(found).place


def _check_path(path: Any) -> None:
    """Refuse records in memory where only files are read."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"A file is read here, and {type(path).__name__} was given; write the records to a file.")


def is_here(path: Path) -> bool:
    """Whether a data file, or a folder of documents, lies there."""
    return path.is_file() or (path.is_dir() and holds_prose(path))


def check_readable(path: str | os.PathLike[str], formats: str = ", ".join(FORMATS)) -> Path:
    """The path of a readable, non-empty file, whatever it holds."""
    found = Path(path)
    check_name(found)
    kind = _kind_of(found)
    if stat.S_ISDIR(kind):
        raise InputError(f"{found}: this is a folder; give a file ({formats}).")
    if not stat.S_ISREG(kind):
        raise InputError(f"{found}: this is a pipe or a device, and data are read more than once; write a file first.")
    if not os.access(found, os.R_OK):
        raise InputError(f"{found}: permission to read it was refused.")
    with open(found, "rb") as source:
        if not source.read(1):  # the size says nothing: files under /proc have none
            raise InputError(f"{found}: the file is empty.")
    return found


def _kind_of(path: Path) -> int:
    """The mode of a file; a path that leads nowhere is a sentence."""
    try:
        return path.stat().st_mode
    except PermissionError as error:
        raise InputError(f"{path}: permission to look into its folder was refused.") from error
    except (OSError, ValueError) as error:
        told = {errno.ENAMETOOLONG: "the name is too long", errno.ELOOP: "the links lead in a circle"}
        reason = told.get(getattr(error, "errno", None) or 0, "no such file")
        raise InputError(f"{str(path)[:200]}: {reason}.") from error


def content_of(path: Path) -> str:
    """A digest of a data file, or of documents. The same bytes mean other records under another suffix."""
    path = prose_text(path) if is_prose(path) else path
    packing = path.suffix.lower() if path.suffix.lower() in PACKED else ""
    return digest(file_digest(path), format_of(path), packing)


def check_unchanged(path: Path, content: str) -> None:
    """Refuse a file that is no longer the one of ``content``: the cache would hold other records under its name."""
    if content_of(path) != content:
        raise InputError(f"{path}: the file changed while it was read; wait until it is written, and try again.")


def header_of(path: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """Column names of a table, None for a plain text file."""
    source = check_file(path)
    with unpacking(source):
        return None if format_of(source) == ".txt" else table_of(source)[0]


def table_of(path: Path) -> tuple[tuple[str, ...], Rows]:
    """Column names and rows of a table; rows are read as they are asked for."""
    return {".tsv": _tsv, ".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}[format_of(path)](path)


def cell_of(row: Mapping[str, Any], name: str) -> Any:
    """The cell of a column; ``ticket.body`` is the field ``body`` of the object in the column ``ticket``."""
    if name in row or "." not in name:
        return row.get(name)
    column, _, field = name.partition(".")
    found = row.get(column)
    return cell_of(found, field) if isinstance(found, Mapping) else None


def _tsv(path: Path) -> tuple[tuple[str, ...], Rows]:
    """Fields are split at tabs and nowhere else: quotes are text."""
    return _headed(
        path, ((number, line.split("\t")) for number, line in lines_of(path) if line.strip() or "\t" in line)
    )


def _csv(path: Path) -> tuple[tuple[str, ...], Rows]:
    """Fields may be quoted, and then hold commas, quotes and line ends.

    Spreadsheets of many countries write semicolons: the header says what separates.
    """
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST))
    all_read = False

    def lines() -> Iterator[str]:
        nonlocal all_read
        for _, line in lines_of(path):
            yield line + "\n"
        all_read = True

    def rows() -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(lines(), delimiter=_separator(path))
        start = 1
        try:
            for cells in reader:
                if all_read:  # the reader asks for a line beyond the last one only while a quote is open
                    raise InputError(f"{path}:{start}: a quote is opened in this row and never closed.")
                if cells:
                    yield start, cells  # where the row begins: it may go on over several lines
                start = reader.line_num + 1
        except csv.Error as error:
            told = {
                "new-line": "a carriage return stands outside quotes; quote the field, or take it out",
                "field limit": f"a field is longer than {LONGEST:,} characters; break it into rows",
            }
            reason = next((words for sign, words in told.items() if sign in str(error)), f"not readable ({error})")
            raise InputError(f"{path}:{start}: {reason}.") from error

    return _headed(path, rows())


def _separator(path: Path) -> str:
    """What stands between the names of the header, outside quotes."""
    header = next((line for _, line in lines_of(path) if line.strip()), "")
    bare = re.sub(r'"[^"]*"', "", header)
    return next((mark for mark in SEPARATORS if mark in bare), ",")


def _headed(path: Path, rows: Iterator[tuple[int, list[str]]]) -> tuple[tuple[str, ...], Rows]:
    header = next((tuple(cells) for _, cells in rows if any(cell.strip() for cell in cells)), None)
    if header is None:
        raise InputError(f"{path}: no header row found; the file holds nothing but white space.")
    _check_header(path, header)
    return header, _named(path, header, rows)


def _check_header(path: Path, header: Sequence[str]) -> None:
    """Refuse what a reader by column names would get wrong without a word."""
    other = next((mark for mark in SEPARATORS if len(header) == 1 and mark in header[0]), None)
    if other is not None and format_of(path) == ".tsv":
        raise InputError(
            f"{path}: the header is one column, {header[0][:60]!r}, and seems to be separated by {SEPARATORS[other]}; "
            "a .tsv file has tabs; give it a name that ends with .csv."
        )
    check_twice(path, header)


def check_twice(path: Path, header: Iterable[str]) -> None:
    """Refuse a table of which two columns have one name: the last would win. Columns without a name are nobody's."""
    twice = [name for name, count in Counter(header).items() if count > 1 and name.strip()]
    if twice:
        raise InputError(f"{path}: the column {twice[0][:60]!r} stands twice in the header; rename one of them.")


def _named(path: Path, header: Sequence[str], rows: Iterable[tuple[int, list[str]]]) -> Rows:
    for number, cells in rows:
        if len(cells) != len(header):
            raise InputError(f"{path}:{number}: {len(cells)} fields found, and the header names {len(header)}.")
        yield number, dict(zip(header, cells, strict=True))


def _jsonl(path: Path) -> tuple[tuple[str, ...], Rows]:
    def rows() -> Rows:
        for number, line in lines_of(path):
            if not line.strip():
                continue
            row = parse_row(line, f"{path}:{number}")
            if isinstance(row, str):
                row = {"text": row}
            if not isinstance(row, dict):
                raise InputError(
                    f'{path}:{number}: an object such as {{"text": …}} was expected, {type(row).__name__} found.'
                )
            yield number, row

    first = next(rows(), None)
    if first is None:
        raise InputError(f"{path}: the file holds no rows.")
    return tuple(first[1]), rows()


def _parquet(path: Path) -> tuple[tuple[str, ...], Rows]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise InputError(f"{path}: reading parquet needs pyarrow; pip install pyarrow.") from error

    source: Any = path
    if path.suffix.lower() in PACKED:
        with opened(path) as packed:
            source = io.BytesIO(packed.read())
    broken = (pyarrow.ArrowException, OSError, UnicodeDecodeError)
    try:
        file = parquet.ParquetFile(source)
    except broken as error:
        raise InputError(f"{path}: not a parquet file, or a damaged one.") from error

    check_twice(path, file.schema_arrow.names)
    _check_cells(path, file.metadata)

    def rows() -> Rows:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=1024):
                for row in _python_rows(batch):
                    number += 1
                    yield number, row
        except broken as error:
            raise InputError(f"{path}: the parquet file is damaged after row {number:,}.") from error

    return tuple(file.schema_arrow.names), rows()


def _python_rows(batch: Any) -> list[dict[str, Any]]:
    """The rows of a batch; a time that Python's own classes cannot hold (nanoseconds, the year 10000) is its text."""
    from pyarrow import string, types

    try:
        rows: list[dict[str, Any]] = batch.to_pylist()
    except (ValueError, OverflowError):
        for place, field in enumerate(batch.schema):
            if types.is_temporal(field.type):
                batch = batch.set_column(place, field.name, batch.column(place).cast(string()))
        rows = batch.to_pylist()
    return rows


def _check_cells(path: Path, metadata: Any) -> None:
    """Refuse cells that are too long on average, before the first is unpacked."""
    for group in map(metadata.row_group, range(metadata.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            if column.total_uncompressed_size > LONGEST * max(group.num_rows, 1):
                raise InputError(
                    f"{path}: the cells of column {column.path_in_schema!r} are longer than {LONGEST:,} bytes; break "
                    "them into rows, one sentence or one record each."
                )
