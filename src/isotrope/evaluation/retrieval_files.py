"""A retrieval set on disk: documents, queries, and which documents answer which query (qrels).

    NAME.corpus     doc_id, title (may be missing), text
    NAME.queries    query_id, text
    NAME.qrels      query_id, doc_id, score    score 0: judged, not relevant; not listed: not judged, counts as 0

A set is every NAME whose corpus is in the folder. BEIR's names of the columns (_id, query-id, corpus-id) are known too.
Captions of pictures are a set as well: ``caption_files``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.data.packed_streams import unpacking
from isotrope.data.tables import check_file, format_of, table_of
from isotrope.errors import InputError
from isotrope.evaluation.benchmark_files import SUFFIXES, find_task

FOLDER = "retrieval"
CORPUS = ".corpus"
PARTS = (CORPUS, ".queries", ".qrels")
DOCUMENT, QUERY, JUDGED = ("doc_id", "_id"), ("query_id", "_id"), ("doc_id", "corpus-id")


@dataclass(frozen=True)
class SetFiles:
    name: str
    corpus: Path
    queries: Path
    qrels: Path

    def state(self) -> tuple[tuple[int, int], ...]:
        """Size and time of each file, by which a changed one is known."""
        found = [file.stat() for file in (self.corpus, self.queries, self.qrels)]
        return tuple((each.st_size, each.st_mtime_ns) for each in found)

    def read(self) -> RetrievalSet:
        return read_set(self)


@dataclass(frozen=True, eq=False)
class RetrievalSet:
    """``gains[i]`` is what ``queries[i]`` wants: row of ``documents`` → gain, zeros included.

    ``own[i]``, where queries are documents too: the row of ``queries[i]`` among the documents, which is not ranked.
    """

    name: str
    documents: list[str]
    queries: list[str]
    gains: list[dict[int, float]]
    unjudged: int  # queries without a relevant document, which are left out
    own: npt.NDArray[np.int64] | None = None


def find_sets(folder: Path) -> list[SetFiles]:
    """The sets of ``folder``/retrieval, or of the folder itself where it has no such part, by name."""
    place = place_of(folder)
    names = names_before(place, CORPUS)
    return [SetFiles(name, *(find_task(place, f"{name}{part}") for part in PARTS)) for name in names]


def place_of(folder: Path) -> Path:
    return folder / FOLDER if (folder / FOLDER).is_dir() else folder


def names_before(place: Path, end: str) -> list[str]:
    """What stands before ``end`` and a suffix of a table in the names of the files, sorted."""
    found = ((file.name, f"{end}{suffix}") for suffix in SUFFIXES for file in place.glob(f"*{end}{suffix}"))
    return sorted({name.removesuffix(tail) for name, tail in found})


def read_set(files: SetFiles) -> RetrievalSet:
    """Each file once. A text of a document is its title and its text."""
    documents = _texts(files.corpus, DOCUMENT, ("title", "text"))
    queries = _texts(files.queries, QUERY, ("text",))
    places = {name: row for row, name in enumerate(documents)}
    gains: dict[str, dict[int, float]] = {name: {} for name in queries}
    for line, (query, document, score) in table_rows(files.qrels, (("query_id", "query-id"), JUDGED, ("score",))):
        where = f"{files.qrels}:{line}"
        if query not in gains:
            raise InputError(f"{where}: query '{query}' is not in {files.queries.name}.")
        if document not in places:
            raise InputError(f"{where}: document '{document}' is not in {files.corpus.name}.")
        if places[document] in gains[query]:
            raise InputError(f"{where}: document '{document}' is judged twice for query '{query}'.")
        gains[query][places[document]] = _gain(score, where)
    judged = [name for name in queries if any(gain > 0 for gain in gains[name].values())]
    if not judged:
        raise InputError(f"{files.qrels}: no query has a relevant document; a score above 0 was expected.")
    return RetrievalSet(
        name=files.name,
        documents=list(documents.values()),
        queries=[queries[name] for name in judged],
        gains=[gains[name] for name in judged],
        unjudged=len(queries) - len(judged),
    )


def _texts(path: Path, identity: Sequence[str], columns: Sequence[str]) -> dict[str, str]:
    """Text by name, in the order of the file; the columns of one text are joined by a blank."""
    found: dict[str, str] = {}
    for line, (name, *parts) in table_rows(path, (identity, *((column,) for column in columns))):
        text = " ".join(" ".join(parts).split())
        if name in found:
            raise InputError(
                f"{path}:{line}: '{name}' stands here for the second time; every {identity[0]} is needed once."
            )
        if not text:
            raise InputError(f"{path}:{line}: '{name}' has no text; fill it in, or take the row out.")
        found[name] = text
    if not found:
        raise InputError(f"{path}: the file holds a header and no rows.")
    return found


def table_rows(path: Path, columns: Sequence[Sequence[str]]) -> Iterator[tuple[int, list[str]]]:
    """Line and cells of each row. Each column goes by the first of its names that is there; a title may be missing."""
    source = check_file(path)
    with unpacking(source):
        if format_of(source) == ".txt":
            raise InputError(f"{path}: a table was expected, with columns {', '.join(names[0] for names in columns)}.")
        header, rows = table_of(source)
        chosen = [_column(path, header, names) for names in columns]
        for line, row in rows:
            yield line, ["" if name is None else _cell(row.get(name)) for name in chosen]


def _column(path: Path, header: Sequence[str], names: Sequence[str]) -> str | None:
    found = next((name for name in names if name in header), None)
    if found is None and names[0] != "title":
        raise InputError(f"{path}: no column {names[0]}; columns found: {', '.join(map(repr, header))}.")
    return found


def _cell(value: Any) -> str:
    return "" if value is None else str(value).strip()


def _gain(score: str, where: str) -> float:
    try:
        gain = float(score)
    except ValueError:
        gain = math.nan
    if not math.isfinite(gain):
        raise InputError(f"{where}: the score '{score}' is not a number.")
    return max(gain, 0.0)
