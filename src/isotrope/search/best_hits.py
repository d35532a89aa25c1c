"""Rows that an engine found → hits: each text once, with its columns and the places of the query's words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from isotrope.search.column_kinds import given_back
from isotrope.search.folder_engine import Ranking
from isotrope.search.hits import Hit
from isotrope.search.index_manifest import Manifest
from isotrope.search.passages import Passage
from isotrope.search.query_words import marks_of, words_of
from isotrope.search.row_filter import Filter
from isotrope.search.word_stems import stemming

if TYPE_CHECKING:
    from isotrope.encoders.token_states import TokenStates

Marks = tuple[tuple[int, int], ...]
FoundRow = tuple[int, float, float | None, float | None]  # row, score, cosine, BM25


class Engine(Protocol):
    """What every engine answers. ``current`` is the engine itself, or the index as it has become since."""

    name: str
    manifest: Manifest

    def current(self) -> Engine: ...
    def dense(self, queries: npt.NDArray[np.float32], top: int, where: Filter | None) -> list[Ranking]: ...
    def lexical(self, queries: Sequence[Sequence[str]], top: int, where: Filter | None) -> list[Ranking]: ...
    def cosines_of(self, query: npt.NDArray[np.float32], rows: Sequence[int]) -> Sequence[float]: ...
    def weights_of(self, query: Sequence[str], rows: Sequence[int]) -> Sequence[float]: ...
    def fetch(self, rows: Sequence[int]) -> list[dict[str, Any]]: ...
    def tokens_of(self, row: int) -> TokenStates | None: ...
    def close(self) -> None: ...


def best_hits(engine: Engine, query: str, found: Sequence[FoundRow], top: int) -> list[Hit]:
    """The first ``top``. Equal texts are given once, unless their rows have ids or columns to tell them apart; of
    the passages of a text the best one is given."""
    stem, reading = stemming(engine.manifest.stemmer), engine.manifest.reading
    words = set(words_of(query, stem))
    alone = not engine.manifest.kinds and reading.id_column is None
    seen: set[Any] = set()
    hits: list[Hit] = []
    for start in range(0, len(found), top):
        some = found[start : start + top]
        rows = engine.fetch([row for row, *_ in some])
        for stored, (row, *scores) in zip(rows, some, strict=True):
            if len(hits) == top:
                return hits
            known = {stored["text"]} if alone else set()
            known |= {(stored["file"], stored["line"])} if reading.passages else set()
            if known & seen:
                continue
            seen |= known
            hits.append(_hit(engine.manifest, row, stored, scores, marks_of(stored["text"], words, stem)))
    return hits


def _hit(manifest: Manifest, row: int, stored: dict[str, Any], scores: Sequence[Any], marks: Marks) -> Hit:
    kinds, sources = manifest.kinds, manifest.sources
    score, cosine, bm25 = scores
    return Hit(
        text=stored["text"],
        score=score,
        line=stored["line"],
        file=sources[stored["file"]].shown if stored["file"] < len(sources) else "",
        id=stored["id"],
        columns={name: given_back(stored["columns"].get(name), kind) for name, kind in kinds.items()},
        marks=marks,
        cosine=cosine,
        bm25=bm25,
        passage=Passage(*stored["passage"]) if stored["passage"] else None,
        row=row,
    )
