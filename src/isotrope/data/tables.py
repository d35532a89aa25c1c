"""Data files → lines of text or rows of a table.

Formats are .txt, .tsv, .csv, .jsonl and .parquet, plain or packed with gzip or xz.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from isotrope.errors import InputError

FORMATS = (".txt", ".tsv", ".csv", ".jsonl", ".parquet")
PACKED = (".gz", ".xz")
Rows = Iterator[tuple[int, dict[str, Any]]]  # line number, row by column


def format_of(path: Path) -> str:
    """The format a file's name states, without .gz or .xz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in PACKED:
        suffixes.pop()
    if not suffixes or suffixes[-1] not in FORMATS:
        raise InputError(
            f"{path}: unknown file type; give one of {', '.join(FORMATS)}, or one of these with .gz or .xz."
        )
    return suffixes[-1]


def check_file(path: str | os.PathLike[str]) -> Path:
    """The path of a readable, non-empty data file, or a sentence that says what it is instead."""
    found = check_readable(path)
    format_of(found)
    return found


def check_readable(path: str | os.PathLike[str], formats: str = ", ".join(FORMATS)) -> Path:
    """The path of a readable, non-empty file, whatever it holds."""
    found = Path(path)
    if not found.exists():
        raise InputError(f"{found}: no such file.")
    if found.is_dir():
        raise InputError(f"{found}: this is a folder; give a file ({formats}).")
    if found.stat().st_size == 0:
        raise InputError(f"{found}: the file is empty.")
    if not os.access(found, os.R_OK):
        raise InputError(f"{found}: permission to read it was refused.")
    return found


def header_of(path: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """Column names of a table, None for a plain text file."""
    source = check_file(path)
    with unpacking(source):
        return None if format_of(source) == ".txt" else table_of(source)[0]


@contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """A damaged packed file becomes one sentence, wherever in the block it is noticed."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk, not the content
            raise
        raise InputError(f"{path}: the packed file is damaged or cut short ({error}).") from error


def opened(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked as its name says. Wiki dumps come as .bz2; tables do not."""
    opener: Any = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}.get(path.suffix.lower(), open)
    return cast(BinaryIO, opener(path, "rb"))


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Decoded lines with their numbers; a bad byte is reported with the line that holds it."""
    with opened(path) as source:
        for number, raw in enumerate(source, 1):
            if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
                raw = raw[3:]
            try:
                line = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                bad = error.object[error.start]
                raise InputError(
                    f"{path}:{number}: byte 0x{bad:02x} is not UTF-8; convert the file, for example: "
                    f"iconv -f latin1 -t utf-8 {path.name} > fixed{path.suffix}."
                ) from error
            if "\0" in line:
                raise InputError(f"{path}:{number}: a NUL byte stands in the text; is this a binary or UTF-16 file?")
            yield number, line.rstrip("\r\n")


def table_of(path: Path) -> tuple[tuple[str, ...], Rows]:
    """Column names and rows of a table; rows are read as they are asked for."""
    return {".tsv": _tsv, ".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}[format_of(path)](path)


def _tsv(path: Path) -> tuple[tuple[str, ...], Rows]:
    """Fields are split at tabs and nowhere else: quotes are text."""
    return _headed(
        path, ((number, line.split("\t")) for number, line in lines_of(path) if line.strip() or "\t" in line)
    )


def _csv(path: Path) -> tuple[tuple[str, ...], Rows]:
    """Fields may be quoted, and then hold commas, quotes and line ends."""
    all_read = False

    def lines() -> Iterator[str]:
        nonlocal all_read
        for _, line in lines_of(path):
            yield line + "\n"
        all_read = True

    def rows() -> Iterator[tuple[int, list[str]]]:
        reader = csv.reader(lines())
        start = 1
        try:
            for cells in reader:
                if all_read:  # the reader asks for a line beyond the last one only while a quote is open
                    raise InputError(f"{path}:{start}: a quote is opened in this row and never closed.")
                if cells:
                    yield reader.line_num, cells
                start = reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"{path}:{start}: not a readable .csv row ({error}).") from error

    return _headed(path, rows())


def _headed(path: Path, rows: Iterator[tuple[int, list[str]]]) -> tuple[tuple[str, ...], Rows]:
    header = next((tuple(cells) for _, cells in rows if any(cell.strip() for cell in cells)), None)
    if header is None:
        raise InputError(f"{path}: no header row found; the file holds nothing but white space.")
    return header, _named(path, header, rows)


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
            try:
                row = json.loads(line)
            except json.JSONDecodeError as error:
                raise InputError(f"{path}:{number}: not JSON ({error.msg}, column {error.colno}).") from error
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

    def rows() -> Rows:
        number = 0
        try:
            for batch in file.iter_batches(batch_size=4096):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
        except broken as error:
            raise InputError(f"{path}: the parquet file is damaged after row {number:,}.") from error

    return tuple(file.schema_arrow.names), rows()
