"""Text files → the rows of an index: a text, where it stands, and the columns that are kept with it.

A folder of documents is a source without rows, and each document in it one more. Files are read twice: ``scan`` looks
at everything and refuses what is wrong before a single text is encoded; then ``Scanned.rows`` gives the rows, from any
row on.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from isotrope.data.packed_streams import unpacking
from isotrope.data.prose_files import (
    LeftOut,
    ProseFiles,
    check_document,
    content_of_document,
    is_prose,
    prose_files,
    size_and_time,
)
from isotrope.data.readers import from_rows, joined_text, with_fields
from isotrope.data.record_types import choose_columns, record_type_named
from isotrope.data.tables import Rows, cell_of, check_source, format_of, table_of
from isotrope.data.text_lines import lines_of
from isotrope.errors import InputError, nearest
from isotrope.files import digest, file_digest
from isotrope.progress import Advance, bar, say
from isotrope.search.column_kinds import fitted, joined, kind_of, plain
from isotrope.search.passages import Passage, passages_of, placed
from isotrope.search.section_rows import HEADING, PASSAGE, sections_of
from isotrope.search.word_stems import Sample

Place = str | os.PathLike[str]
UNTYPED = (".tsv", ".csv")
Texts = list[tuple[str, Passage | None]]  # the one text of a row, or its passages


class IndexRow(NamedTuple):
    """``file`` is the number of its source; ``passage`` is None in an index of whole texts."""

    text: str
    line: int
    file: int
    id: str | None
    values: dict[str, Any]
    passage: Passage | None = None


@dataclass(frozen=True)
class Source:
    """A file as it was when it was read, or a folder of documents with the names that it had.

    ``name`` is that of a document: a path as it was given, which a person can open.
    """

    path: str
    digest: str
    size: int
    time: int  # of its last change, in nanoseconds
    rows: int
    name: str = ""

    @property
    def shown(self) -> str:
        return self.name or Path(self.path).name

    def changed(self) -> bool:
        """Whether the file is there and another one now; its bytes are read only where its time is another one."""
        path = Path(self.path)
        try:
            if path.is_dir():
                return _names_in(prose_files(path)) != self.digest
            found = path.stat()
            if found.st_size == self.size and found.st_mtime_ns == self.time:
                return False
            return found.st_size != self.size or file_digest(path) != self.digest
        except InputError:  # a folder whose documents are gone
            return True
        except OSError:
            return False


@dataclass(frozen=True)
class Reading:
    """What of a file is text, what is kept, which column names a row, and the words of a passage: None for whole texts.

    A long text becomes several rows of one line. Of several text columns the last is split, and the others, such as a
    title, stand before each passage of it.
    """

    columns: tuple[str, ...] | None = None
    keep: tuple[str, ...] | None = None
    id_column: str | None = None
    passages: int | None = None


@dataclass(frozen=True)
class Scanned:
    """Files that were looked at from beginning to end; ``kinds`` are those of the kept columns, of which
    ``empty_columns`` have no value in any row. ``sample`` has the beginnings of some texts."""

    reading: Reading
    sources: tuple[Source, ...]
    kinds: dict[str, str]
    empty: int
    empty_columns: frozenset[str] = frozenset()
    sample: tuple[str, ...] = ()

    def __len__(self) -> int:
        return sum(source.rows for source in self.sources)

    def rows(self, start: int = 0, kinds: Mapping[str, str] | None = None) -> Iterator[IndexRow]:
        """The rows from number ``start`` on; ``kinds`` may be those of an index that they come into."""
        chosen = {**self.kinds, **(kinds or {})}
        full = (
            IndexRow(text, line, file, name, {key: fitted(values.get(key), chosen[key]) for key in self.kinds}, passage)
            for file, source in enumerate(self.sources)
            if source.rows
            for texts, line, name, values in _rows_of(Path(source.path), self.reading, bool(source.name))
            for text, passage in texts
        )
        return itertools.islice(full, start, None)


def scan(files: Sequence[Place], reading: Reading) -> Scanned:
    """Look at every row: count, find the kinds of columns, refuse rows without their id and ids that come twice."""
    if not files:
        raise InputError(
            "index needs a file of text (.txt, .tsv, .csv, .jsonl, .parquet, .md, .rst) or a folder.", "text"
        )
    reading = fitting_reading(files, reading)
    _check_columns(files, reading)
    scan = _Scan(reading)
    sources = [source for file in files for source in scan.sources_of(check_source(file))]
    if not any(source.rows for source in sources):
        raise InputError(f"{files[0]}: no sentences found. {scan.left_out}".rstrip())
    if scan.left_out.count:
        say(str(scan.left_out))
    found = {column: joined(some) for column, some in scan.kinds.items()}
    for column in reading.keep or ():
        if column not in found:  # of documents alone, as a table refuses what it lacks
            raise InputError(f"keep names an unknown column '{column}'{nearest(column, {*found, HEADING})}", "keep")
    unfilled = frozenset(name for name, some in scan.kinds.items() if not some)
    return Scanned(reading, tuple(sources), found, scan.empty, unfilled, tuple(scan.sample.texts))


def fitting_reading(files: Sequence[Place], reading: Reading) -> Reading:
    """Documents are split into passages, also where nobody asked for it: a section is longer than a model reads."""
    split = reading.passages is not None or not any(map(is_prose, files))
    return reading if split else replace(reading, passages=PASSAGE)


def _check_columns(files: Sequence[Place], reading: Reading) -> None:
    """Refuse columns of the text where no file has any; documents may stand next to a table that has."""
    if reading.columns and all(is_prose(file) or format_of(check_source(file)) == ".txt" for file in files):
        raise InputError(
            f"{files[0]}: plain text and documents have no columns, and '{reading.columns[0]}' was asked for; leave "
            "columns out, or give a .tsv, .csv, .jsonl or .parquet file.",
            setting="columns",
        )


class _Scan:
    """What is found out of all files, one after another."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.kinds: dict[str, set[str]] = defaultdict(set)
        self.seen: set[str] = set()
        self.empty, self.sample, self.left_out = 0, Sample(), LeftOut()

    def sources_of(self, given: Path) -> Iterator[Source]:
        """Of a folder: itself, so that a document that comes or goes is noticed, and its documents."""
        if not is_prose(given):
            with bar(f"reading {given.name}", None) as advance:
                yield self._source(given, "", advance)
            return
        files = prose_files(given)
        self.left_out.join(files.left_out)
        if given.is_dir():
            yield Source(str(given.resolve()), _names_in(files), len(files.paths), 0, 0, str(given))
        with bar(f"reading {files.title}", None) as advance:
            for path in files.paths:
                try:
                    check_document(path)
                except (InputError, OSError) as error:
                    if not given.is_dir():
                        raise
                    self.left_out.add(str(path), path, error)
                    yield Source(str(path.absolute()), content_of_document(path), *size_and_time(path), 0, str(path))
                    continue
                yield self._source(path, str(path), advance)

    def _source(self, path: Path, name: str, advance: Advance) -> Source:
        before, rows = path.stat(), 0
        for texts, line, row_name, values in _rows_of(path, self.reading, bool(name)):
            advance()
            if not texts:
                self.empty += 1
                continue
            rows += len(texts)
            self._see(texts[0][0], values, untyped=not name and format_of(path) in UNTYPED)
            if self.reading.id_column is not None:
                _check_id(row_name, self.seen, f"{path}:{line}", self.reading.id_column)
        place = path.absolute() if name else path.resolve()  # where a link leads, the ending may be another
        return Source(str(place), file_digest(path), before.st_size, before.st_mtime_ns, rows, name)

    def _see(self, text: str, values: Mapping[str, Any], untyped: bool) -> None:
        self.sample.see(text)
        for column, value in values.items():
            kind = kind_of(value, untyped)
            self.kinds[column].update(() if kind is None else (kind,))


def named_below(sources: Sequence[Source], given: Path) -> tuple[Source, ...]:
    """The documents of a folder, or the one, named by how it is given now: from elsewhere the names were others."""
    first = sources[0].name
    return tuple(
        replace(one, name=str(given / Path(one.name).relative_to(first))) if one.name else one for one in sources
    )


def _names_in(files: ProseFiles) -> str:
    return digest(*map(files.name, files.paths))


def _check_id(name: str | None, seen: set[str], where: str, column: str) -> None:
    if name is None:
        raise InputError(f"{where}: the row has no {column}; every row needs one, as id_column names it.")
    if name in seen:
        raise InputError(f"{where}: {column} '{name}' stands here for the second time; an id names one row.")
    seen.add(name)


def _rows_of(path: Path, reading: Reading, document: bool) -> Iterator[tuple[Texts, int, str | None, dict[str, Any]]]:
    """Text or passages, line, id and kept values of each row; an empty row has no text."""
    sentences = record_type_named("sentences")
    if document:
        yield from _sections(path, reading)
        return
    if format_of(path) == ".txt":
        for given in (reading.keep, None if reading.id_column is None else (reading.id_column,)):
            if given:
                raise InputError(f"{path}: a .txt file has no columns, and '{given[0]}' was asked for.")
        with unpacking(path):
            for number, line in lines_of(path):
                yield _split(" ".join(line.split()), "", line, reading.passages), number, None, {}
        return
    with unpacking(path):
        header, rows = table_of(path)
        chosen = _text_columns(header, reading, str(path))
        _check_known(path, header, reading)
        rows = with_fields(rows, [name for name in chosen if name not in header], str(path))
        last: list[dict[str, Any]] = [{}]
        for record in from_rows(_watched(rows, chosen, last, str(path)), header, sentences, [chosen[0]], str(path)):
            row, where = last[0], f"{path}:{record.line}"
            name = None if reading.id_column is None else plain(row.get(reading.id_column), where)
            kept = {
                column: plain(cell, where)
                for column, cell in row.items()
                if column not in chosen and column.strip() and (reading.keep is None or column in reading.keep)
            }
            lead = _joined(row, chosen[:-1], str(path), record.line)
            texts = _split(record.texts[0], lead, cell_of(row, chosen[-1]), reading.passages)
            yield texts, record.line, None if name is None else str(name), kept


def _sections(path: Path, reading: Reading) -> Iterator[tuple[Texts, int, str | None, dict[str, Any]]]:
    """Of a document: its headings stand before each passage, and are kept as a column."""
    keeps = reading.keep is None or HEADING in reading.keep
    for line, heading, text in sections_of(path):
        lead = f"{heading}:" if heading else ""
        texts = _split(f"{lead} {' '.join(text.split())}".strip(), lead, text, reading.passages)
        yield texts, line, None, {HEADING: heading} if keeps else {}


def _split(text: str, lead: str, cell: Any, passages: int | None) -> Texts:
    """The text as it is, or its passages, ``lead`` before each, with their places in the ``cell`` that was split."""
    if passages is None or not text:
        return [(text, None)] if text else []
    lead = lead if text.startswith(lead) else ""
    body = text[len(lead) :]
    found = passages_of(body, passages) or [""]
    places = placed(found, cell if isinstance(cell, str) and cell.split() == body.split() else body.strip())
    return [(f"{lead} {passage}".strip(), place) for passage, place in zip(found, places, strict=True)]


def _joined(row: Mapping[str, Any], names: Sequence[str], where: str, line: int) -> str:
    return joined_text([cell_of(row, name) for name in names], where, line)


def _text_columns(header: Sequence[str], reading: Reading, where: str) -> tuple[str, ...]:
    """One column by its known name, or those that were asked for, whose texts are joined."""
    sentences = record_type_named("sentences")
    if reading.columns is None:
        return choose_columns(header, sentences, None, where)[:1]
    return tuple(choose_columns(header, sentences, [name], where)[0] for name in reading.columns)


def _check_known(path: Path, header: Sequence[str], reading: Reading) -> None:
    """A .jsonl file may bring a column later than in its first row: that one is checked after all rows are read."""
    if format_of(path) == ".jsonl":
        return
    asked = {"keep": reading.keep or (), "id_column": (reading.id_column,) if reading.id_column else ()}
    for setting, names in asked.items():
        for name in names:
            if name not in header:
                raise InputError(f"{path}: {setting} names an unknown column '{name}'{nearest(name, header)}", setting)


def _watched(rows: Rows, chosen: Sequence[str], last: list[dict[str, Any]], where: str) -> Rows:
    """The rows, each put into ``last`` before it is given; several text columns are joined into the first."""
    for line, row in rows:
        last[0] = row
        if len(chosen) == 1:
            yield line, row
            continue
        yield line, {**row, chosen[0]: _joined(row, chosen, where, line)}
