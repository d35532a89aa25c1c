"""What somebody gave, a file or a list of Python values, as records of the first kind that fits."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from isotrope.data.emoji import labelled_by_emoji
from isotrope.data.kinds import Kind, Record, choose_columns, kind_named
from isotrope.data.readers import from_rows, read
from isotrope.data.tables import PACKED, check_file, format_of, header_of
from isotrope.errors import InputError
from isotrope.files import digest, file_digest

LIST = "the given list"
LABELLED = "labelled-pairs"


class Source(NamedTuple):
    where: str
    kind: Kind
    records: Iterable[Record]
    content: str  # a digest


def find_records(
    source: str | os.PathLike[str] | Sequence[Any], kinds: Sequence[str], columns: Sequence[str] | None, split: bool
) -> Source:
    """``kinds`` are tried in order: the first whose columns are there is taken."""
    if isinstance(source, str | os.PathLike):
        found = _in_file(source, kinds, columns, split)
    else:
        found = _in_memory(list(source), kinds, columns, split)
    return found._replace(records=labelled_by_emoji(found.records, found.where)) if found.kind.in_text else found


def read_sentences(sources: Sequence[str | os.PathLike[str]]) -> Iterator[Record]:
    """Sentences of all files in order, documents numbered throughout."""
    first = 0
    for source in sources:
        last = first
        for record in read(source, kind_named("documents")):
            last = first + record.document
            if record.texts[0]:
                yield record._replace(document=last)
        first = last + 1


def fits(path: str | os.PathLike[str], kind: str) -> bool:
    """Whether a file can be read as this kind: plain text where a record is one text, else by its columns."""
    header = header_of(path)
    if header is None:
        return kind_named(kind).width == 1
    try:
        choose_columns(header, kind_named(kind), None, str(path))
    except InputError:
        return False
    return True


def _in_file(source: str | os.PathLike[str], kinds: Sequence[str], columns: Sequence[str] | None, split: bool) -> Source:
    path = check_file(source)
    header = header_of(path)
    kind = _of_width(1, kinds) or kind_named(kinds[0]) if header is None else _that_fits(header, kinds, columns, str(path))
    if kind.value == "score" and LABELLED in kinds and fits(path, LABELLED) and _begins_with_a_word(read(path, kind_named(LABELLED))):
        kind = kind_named(LABELLED)
    packing = path.suffix.lower() if path.suffix.lower() in PACKED else ""
    content = digest(file_digest(path), format_of(path), packing)  # the same bytes mean other records under another suffix
    return Source(str(source), kind, read(path, kind, columns, split), content)


def _in_memory(rows: list[Any], kinds: Sequence[str], columns: Sequence[str] | None, split: bool) -> Source:
    if not rows:
        raise InputError("The given list of records is empty.")
    if all(isinstance(row, dict) for row in rows):
        kind, named = _that_fits(tuple(rows[0]), kinds, columns, LIST), rows
    else:
        columns = None
        kind, names = _without_names(rows, kinds)
        named = [dict(zip(names, [row] if len(names) == 1 else row, strict=False)) for row in rows]
    content = digest(json.dumps(named, default=str))
    return Source(LIST, kind, from_rows(iter(enumerate(named, 1)), tuple(named[0]), kind, columns, LIST, split), content)


def _without_names(rows: list[Any], kinds: Sequence[str]) -> tuple[Kind, tuple[str, ...]]:
    """The kind of a list of strings or tuples, and the columns they stand for. A list of lists can be whole documents or dialogues."""
    if all(isinstance(row, str) for row in rows):
        kind = _of_width(1, kinds)
        if kind is not None:
            return kind, kind.known[0][:1]
    if all(isinstance(row, tuple | list) for row in rows):
        whole = next((kind_named(name) for name in kinds if kind_named(name).whole), None)
        if whole is not None:
            return whole, whole.known[0][:1]
        width = len(rows[0])
        odd = next((number for number, row in enumerate(rows, 1) if len(row) != width), None)
        if odd is not None:
            raise InputError(f"The given list: record {odd} has {len(rows[odd - 1])} fields, and the first has {width}.")
        kind = _of_width(width, kinds)
        if kind is None:
            raise InputError(f"The given list holds tuples of {width}; {' or '.join(kinds)} were wanted.")
        return kind, (*(kind.spoken or kind.known[0]), *kind.extra)
    wanted = "/".join(kind_named(kinds[0]).spoken or kind_named(kinds[0]).known[0])
    raise InputError(f"{kinds[0]} were wanted; give a list of tuples, or of dictionaries with the keys {wanted}.")


def _begins_with_a_word(records: Iterable[Record]) -> bool:
    """A column called label can hold scores or words."""
    value = next((record.value for record in records if record.value), "0")
    try:
        float(value)
    except ValueError:
        return True
    return False


def _of_width(width: int, kinds: Sequence[str]) -> Kind | None:
    found = (kind_named(name) for name in kinds)
    return next((kind for kind in found if kind.width <= width <= kind.width + bool(kind.extra)), None)


def _that_fits(header: Sequence[str], kinds: Sequence[str], columns: Sequence[str] | None, where: str) -> Kind:
    for name in kinds:
        try:
            choose_columns(header, kind_named(name), columns, where)
        except InputError:
            continue
        return kind_named(name)
    choose_columns(header, kind_named(kinds[0]), columns, where)  # says what is missing
    raise AssertionError("unreachable")
