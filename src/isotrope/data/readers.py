"""Read .txt, .tsv, .csv, .jsonl and .parquet, plain or packed with gzip or xz, one record at a time."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

from isotrope.data.kinds import Kind, Record, choose_columns, type_columns
from isotrope.data.sentences import split_sentences
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
        raise InputError(f"{path}: unknown file type; give one of {', '.join(FORMATS)}, or one of these with .gz or .xz.")
    return suffixes[-1]


def check_file(path: str | os.PathLike[str]) -> Path:
    """The path of a readable, non-empty data file, or a sentence that says what it is instead."""
    found = Path(path)
    if not found.exists():
        raise InputError(f"{found}: no such file.")
    if found.is_dir():
        raise InputError(f"{found}: this is a folder; give a file ({', '.join(FORMATS)}).")
    if found.stat().st_size == 0:
        raise InputError(f"{found}: the file is empty.")
    if not os.access(found, os.R_OK):
        raise InputError(f"{found}: permission to read it was refused.")
    format_of(found)
    return found


def read(path: str | os.PathLike[str], kind: Kind, columns: Sequence[str] | None = None, split: bool = False) -> Iterator[Record]:
    """Records of ``kind`` in file order; blank texts are given too, for the caller to count.

    ``split`` cuts each text into sentences (kinds with one text field only). Documents of a table are always cut.
    """
    source = check_file(path)
    with _unpacking(source):
        if format_of(source) == ".txt":
            records = _from_lines(source, kind)
            yield from _split(records) if split else records
        else:
            header, rows = _table(source)
            yield from from_rows(rows, header, kind, columns, str(source), split)


def column(path: str | os.PathLike[str], name: str) -> list[str]:
    """One column of a table, row by row; empty strings where the table has no such column."""
    source = check_file(path)
    with _unpacking(source):
        return [_folded(_text(row.get(name), str(source), line)) for line, row in _table(source)[1]]


def header_of(path: str | os.PathLike[str]) -> tuple[str, ...] | None:
    """Column names of a table, None for a plain text file."""
    source = check_file(path)
    with _unpacking(source):
        return None if format_of(source) == ".txt" else _table(source)[0]


def from_rows(
    rows: Rows, header: Sequence[str], kind: Kind, columns: Sequence[str] | None, where: str, split: bool = False
) -> Iterator[Record]:
    """Records of a table. A list in the only column is a document or a dialogue already cut."""
    names = choose_columns(header, kind, columns, where)
    if split and len(kind.fields) != 1:
        raise InputError(f"{where}: splitting into sentences works for one text column; {kind.name} have {len(kind.fields)}.")
    # Without --columns the names stay open: a .jsonl file may bring the extra column later than in its first row.
    extra = names[kind.width :] or tuple(name for name in kind.extra if columns is None and name not in names)
    typed = type_columns(header, kind, columns) or (kind.types if columns is None else ())
    if kind.name == "dialogues":
        utterances = _utterances(rows, names[0], extra, where)
        yield from _split(utterances) if split else utterances
        return
    for number, (line, row) in enumerate(rows):
        cells = [row.get(name) for name in names[: kind.width]]
        value = None if kind.value is None or kind.in_text else _folded(_text(cells[-1], where, line))
        others = _listed(_first(row, extra), where, line) if extra else ()
        sort = _folded(_text(_first(row, typed), where, line)) if typed else ""
        if kind.width == 1 and isinstance(cells[0], list | tuple):
            sentences = [_folded(_text(part, where, line)) for part in cells[0]]
        elif split or kind.name == "documents":
            sentences = split_sentences(_text(cells[0], where, line))
        else:
            texts = tuple(_folded(_text(cell, where, line)) for cell in cells[: len(kind.fields)])
            yield Record(texts, value, number, line, others, sort)
            continue
        for sentence in sentences or [""]:
            yield Record((sentence,), value, number, line, others, sort)


def _utterances(rows: Rows, column: str, named_by: Sequence[str], where: str) -> Iterator[Record]:
    """A row is a whole dialogue, as a list, or one utterance and the name of its dialogue."""
    number, last, seen = -1, "", set()
    for line, row in rows:
        cell = row.get(column)
        if isinstance(cell, list | tuple):
            number, last = number + 1, ""
            for part in cell or [""]:
                yield Record((_folded(_text(part, where, line)),), None, number, line)
            continue
        text, name = (_folded(_text(found, where, line)) for found in (cell, _first(row, named_by)))
        if text and not name:
            raise InputError(
                f"{where}:{line}: an utterance that names no dialogue; give a column dialogue_id, or a list of utterances a row, "
                "or a .txt file with a blank line between dialogues."
            )
        if text and name != last:
            if name in seen:
                raise InputError(f"{where}:{line}: dialogue '{name}' goes on here after another one began; sort the rows by dialogue.")
            seen.add(name)
            number, last = number + 1, name
        yield Record((text,), None, number, line)


def _first(row: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _listed(cell: Any, where: str, line: int) -> tuple[str, ...]:
    """The parts of a list, or of a text with | between them; each once."""
    parts = cell if isinstance(cell, list | tuple) else _text(cell, where, line).split("|")
    return tuple(dict.fromkeys(name for part in parts if (name := _folded(_text(part, where, line)))))


@contextmanager
def _unpacking(path: Path) -> Iterator[None]:
    try:
        yield
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zlib.error) as error:
        raise InputError(f"{path}: the packed file is damaged or cut short ({error}).") from error


def _text(cell: Any, where: str, line: int) -> str:
    if cell is None:
        return ""
    if isinstance(cell, list | tuple | dict):
        raise InputError(f"{where}:{line}: a text was expected, and a {type(cell).__name__} found.")
    try:
        text = cell.decode("utf-8") if isinstance(cell, bytes) else str(cell)
        text.encode("utf-8")  # JSON can spell half a character (\ud83d), which no tokeniser takes
    except (UnicodeDecodeError, UnicodeEncodeError) as error:
        raise InputError(f"{where}:{line}: the text holds half a character or bytes that are not UTF-8 ({error.reason}).") from error
    return text


def _folded(text: str) -> str:
    return " ".join(text.split())


def _split(records: Iterable[Record]) -> Iterator[Record]:
    for record in records:
        for sentence in split_sentences(record.texts[0]) or [""]:
            yield record._replace(texts=(sentence,))


def _opened(path: Path) -> BinaryIO:
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix.lower(), open)
    return cast(BinaryIO, opener(path, "rb"))


def lines_of(path: Path) -> Iterator[tuple[int, str]]:
    """Decoded lines with their numbers; a bad byte is reported with the line that holds it."""
    with _opened(path) as source:
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


def _from_lines(path: Path, kind: Kind) -> Iterator[Record]:
    if kind.width != 1:
        wanted = "/".join(kind.known[0])
        raise InputError(
            f"{path}: a .txt file holds one sentence a line, and {kind.name} were asked for; "
            f"give a .tsv, .csv, .jsonl or .parquet file with columns {wanted}."
        )
    document = 0
    for number, line in lines_of(path):
        text = _folded(line)
        if not text:
            document += 1
        yield Record((text,), None, document, number)


def _table(path: Path) -> tuple[tuple[str, ...], Rows]:
    return {".tsv": _tsv, ".csv": _csv, ".jsonl": _jsonl, ".parquet": _parquet}[format_of(path)](path)


def _tsv(path: Path) -> tuple[tuple[str, ...], Rows]:
    """Fields are split at tabs and nowhere else: quotes are text."""
    return _headed(path, ((number, line.split("\t")) for number, line in lines_of(path) if line.strip() or "\t" in line))


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
                raise InputError(f'{path}:{number}: an object such as {{"text": …}} was expected, {type(row).__name__} found.')
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
        with _opened(path) as packed:
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
