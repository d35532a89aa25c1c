"""Text files → the rows of an index: a text, where it stands, and the columns that are kept with it.

Files are read twice: ``scan`` looks at everything and refuses what is wrong before a single text is encoded; then
``Scanned.rows`` gives the rows, from any row on.
"""

from __future__ import annotations

import itertools
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from isotrope.data.packed_streams import unpacking
from isotrope.data.readers import from_rows
from isotrope.data.record_types import choose_columns, record_type_named
from isotrope.data.tables import Rows, cell_of, check_file, format_of, table_of
from isotrope.data.text_lines import lines_of
from isotrope.errors import InputError, nearest
from isotrope.files import file_digest
from isotrope.progress import bar
from isotrope.search.column_kinds import fitted, joined, kind_of, plain
from isotrope.search.passages import Passage, passages_of, placed
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
    """A file as it was when it was read."""

    path: str
    digest: str
    size: int
    time: int  # of its last change, in nanoseconds
    rows: int

    def changed(self) -> bool:
        """Whether the file is there and another one now; its bytes are read only where its time is another one."""
        path = Path(self.path)
        try:
            found = path.stat()
            if found.st_size == self.size and found.st_mtime_ns == self.time:
                return False
            return found.st_size != self.size or file_digest(path) != self.digest
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
            for texts, line, name, values in _rows_of(Path(source.path), self.reading)
            for text, passage in texts
        )
        return itertools.islice(full, start, None)


def scan(files: Sequence[Place], reading: Reading) -> Scanned:
    """Look at every row: count, find the kinds of columns, refuse rows without their id and ids that come twice."""
    if not files:
        raise InputError("index needs a file of text (.txt, .tsv, .csv, .jsonl or .parquet).", "text")
    paths = [check_file(file) for file in files]
    kinds: dict[str, set[str]] = defaultdict(set)
    seen: set[str] = set()
    sources, empty, sample = [], 0, Sample()
    for path in paths:
        before = path.stat()
        untyped = format_of(path) in UNTYPED
        rows = 0
        with bar(f"reading {path.name}", None) as advance:
            for texts, line, name, values in _rows_of(path, reading):
                advance()
                if not texts:
                    empty += 1
                    continue
                rows += len(texts)
                sample.see(texts[0][0])
                for column, value in values.items():
                    kind = kind_of(value, untyped)
                    kinds[column].update(() if kind is None else (kind,))
                if reading.id_column is not None:
                    _check_id(name, seen, f"{path}:{line}", reading.id_column)
        sources.append(Source(str(path.resolve()), file_digest(path), before.st_size, before.st_mtime_ns, rows))
    if not any(source.rows for source in sources):
        raise InputError(f"{paths[0]}: no sentences found.")
    found = {column: joined(some) for column, some in kinds.items()}
    if reading.keep is not None:
        for column in reading.keep:
            if column not in found:
                raise InputError(f"keep names an unknown column '{column}'{nearest(column, found)}", "keep")
    unfilled = frozenset(name for name, some in kinds.items() if not some)
    return Scanned(reading, tuple(sources), found, empty, unfilled, tuple(sample.texts))


def _check_id(name: str | None, seen: set[str], where: str, column: str) -> None:
    if name is None:
        raise InputError(f"{where}: the row has no {column}; every row needs one, as id_column names it.")
    if name in seen:
        raise InputError(f"{where}: {column} '{name}' stands here for the second time; an id names one row.")
    seen.add(name)


def _rows_of(path: Path, reading: Reading) -> Iterator[tuple[Texts, int, str | None, dict[str, Any]]]:
    """Text or passages, line, id and kept values of each row; an empty row has no text."""
    sentences = record_type_named("sentences")
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
        last: list[dict[str, Any]] = [{}]
        for record in from_rows(_watched(rows, chosen, last), header, sentences, [chosen[0]], str(path)):
            row, where = last[0], f"{path}:{record.line}"
            name = None if reading.id_column is None else plain(row.get(reading.id_column), where)
            kept = {
                column: plain(cell, where)
                for column, cell in row.items()
                if column not in chosen and column.strip() and (reading.keep is None or column in reading.keep)
            }
            lead = " ".join(" ".join(_cells(row, chosen[:-1])).split())
            texts = _split(record.texts[0], lead, cell_of(row, chosen[-1]), reading.passages)
            yield texts, record.line, None if name is None else str(name), kept


def _split(text: str, lead: str, cell: Any, passages: int | None) -> Texts:
    """The text as it is, or its passages, ``lead`` before each, with their places in the ``cell`` that was split."""
    if passages is None or not text:
        return [(text, None)] if text else []
    lead = lead if text.startswith(lead) else ""
    body = text[len(lead) :]
    found = passages_of(body, passages) or [""]
    places = placed(found, cell if isinstance(cell, str) and cell.split() == body.split() else body.strip())
    return [(f"{lead} {passage}".strip(), place) for passage, place in zip(found, places, strict=True)]


def _cells(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    return [str(cell) for name in names if (cell := cell_of(row, name)) not in (None, "")]


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


def _watched(rows: Rows, chosen: Sequence[str], last: list[dict[str, Any]]) -> Rows:
    """The rows, each put into ``last`` before it is given; several text columns are joined into the first."""
    for line, row in rows:
        last[0] = row
        if len(chosen) == 1:
            yield line, row
            continue
        yield line, {**row, chosen[0]: " ".join(_cells(row, chosen))}
