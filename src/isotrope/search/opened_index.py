"""An index that is open for queries: by vectors, by words, or by both joined by their standardised scores.

    hybrid     0.6 · z(cosine) + 0.4 · z(BM25) over the rows of both rankings (measures/score_fusion.py)
    dense      cosine of query and text
    lexical    BM25 of their shared words

Hybrid is the default: words find names, numbers and rare terms that an encoder blurs, vectors find what is said in
other words. The first hits of any of them can be ordered anew by their tokens (token_reranking.py). The model is loaded
at the first query that needs it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError, check_between, nearest
from isotrope.measures.score_fusion import SCALED_BY, fuse
from isotrope.progress import say
from isotrope.search.best_hits import Engine, FoundRow, best_hits
from isotrope.search.folder_engine import FolderEngine
from isotrope.search.hits import Hit
from isotrope.search.index_manifest import Manifest
from isotrope.search.index_place import parse_place
from isotrope.search.part_sums import check_parts
from isotrope.search.query_words import words_of
from isotrope.search.row_filter import Filter, read_filter
from isotrope.search.word_stems import stemming

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder
    from isotrope.search.token_reranking import Reranker
    from isotrope.search.vector_maker import VectorMaker

MODES = ("hybrid", "dense", "lexical")
DEPTH = SCALED_BY  # rows of each ranking that are joined, at least
LONGEST = 100_000  # characters of a query
MOST = 10_000  # hits
MOST_RERANKED = 1_000
AT_ONCE = 256  # queries whose rankings are in memory


class SearchIndex:
    """Rows of text with vectors and words, ready to be searched; threads may share it.

    A folder that is changed meanwhile (rows added, deleted, updated) is opened again at the next query.
    """

    def __init__(self, place: str, engine: Engine, encoder: Encoder | None = None) -> None:
        self.place, self.engine = place, engine
        self._lock = Lock()
        self._maker: VectorMaker | None = None
        self._reranker: Reranker | None = None
        if encoder is not None:
            self._maker = self._made(encoder)

    @property
    def manifest(self) -> Manifest:
        return self.engine.manifest

    def __len__(self) -> int:
        return self.manifest.rows

    def __enter__(self) -> SearchIndex:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def close(self) -> None:
        self.engine.close()

    @property
    def columns(self) -> dict[str, str]:
        """The kept columns: number, text, boolean or json."""
        return dict(self.manifest.kinds)

    def info(self) -> dict[str, Any]:
        """JSON values that describe the index."""
        manifest = self.manifest
        return {
            "place": self.place,
            "engine": self.engine.name,
            "rows": len(self),
            "model": manifest.model.name,
            "fingerprint": manifest.model.fingerprint,
            "dimension": manifest.dimension,
            "precision": manifest.precision,
            "cut": manifest.cut,
            "passages": manifest.reading.passages,
            "columns": self.columns,
            "id_column": manifest.reading.id_column,
            "modes": list(MODES),
            "rerank": self._can_rerank(),
            "tokens": manifest.tokens,
            "stemmer": manifest.stemmer,
            "sources": [source.path for source in manifest.sources],
        }

    def search(
        self,
        queries: str | Sequence[str],
        top: int = 10,
        mode: str = "hybrid",
        where: str | None = None,
        rerank: int = 0,
    ) -> list[list[Hit]]:
        """The ``top`` rows for each query, the best first. ``where`` is a filter such as "year > 2020".

        ``rerank`` (at least ``top``, or 0 for none): so many of the first rows are ordered anew by their tokens.
        """
        asked = [queries] if isinstance(queries, str) else list(queries)
        check_query(asked, top, mode, rerank)
        found: list[list[Hit]] = []
        for start in range(0, len(asked), AT_ONCE):
            some = asked[start : start + AT_ONCE]
            found += [hits[:top] for hits in self._first(some, max(rerank, top), mode, where, rerank > 0)]
        return found

    def _first(self, asked: list[str], top: int, mode: str, where: str | None, again: bool) -> list[list[Hit]]:
        """Of the index as it is now. One that is changed meanwhile is asked again: its old files may be gone."""
        while True:
            engine = self._current()
            try:
                hits = self._of(engine, asked, top, mode, where)
                return self._reordered(engine, asked, hits) if again else hits
            except InputError:
                if engine.current() is engine:
                    raise

    def _current(self) -> Engine:
        with self._lock:
            found = self.engine.current()
            if found is not self.engine:
                say(f"{self.place}: the index has changed and was opened again; it has {found.manifest.rows:,} rows.")
                self.engine = found
            return found

    def _of(self, engine: Engine, asked: list[str], top: int, mode: str, where: str | None) -> list[list[Hit]]:
        chosen, rows = None if where is None else read_filter(where, engine.manifest.kinds), engine.manifest.rows
        depth = min(max(DEPTH, 4 * top), max(rows, 1))
        while True:
            found = self._found(engine, asked, depth, mode, chosen)
            hits = [best_hits(engine, *pair, top) for pair in zip(asked, found, strict=True)]
            cut = (len(some) < top <= len(ranked) for some, ranked in zip(hits, found, strict=True))
            if depth >= rows or not any(cut):  # equal texts may have taken the places of others
                return hits
            depth = min(4 * depth, rows)

    def _found(
        self, engine: Engine, queries: list[str], depth: int, mode: str, where: Filter | None
    ) -> list[list[FoundRow]]:
        """Row, score, cosine and BM25 of each query's rows."""
        stem = stemming(engine.manifest.stemmer)
        words = [words_of(query, stem) for query in queries]
        if mode == "lexical":
            return [[(row, bm25, None, bm25) for row, bm25 in found] for found in engine.lexical(words, depth, where)]
        vectors = self._encoded(queries)
        dense = engine.dense(vectors, depth, where)
        if mode == "dense":
            return [[(row, cosine, cosine, None) for row, cosine in found] for found in dense]
        lexical = engine.lexical(words, depth, where)
        return [
            [*fuse(*rankings, partial(engine.cosines_of, vector), partial(engine.weights_of, asked))]
            for vector, asked, rankings in zip(vectors, words, zip(dense, lexical, strict=True), strict=True)
        ]

    def _encoded(self, queries: list[str]) -> npt.NDArray[np.float32]:
        with self._lock:  # a forward pass switches the model's mode for a moment
            return self._ready().queries(queries)

    def _reordered(self, engine: Engine, queries: list[str], hits: list[list[Hit]]) -> list[list[Hit]]:
        from isotrope.search.token_reranking import Reranker

        with self._lock:
            self._reranker = self._reranker or Reranker(self._ready().encoder)
            return self._reranker.reordered(queries, hits, engine.tokens_of)

    def _can_rerank(self) -> bool:
        if self._maker is None:  # a model that is not loaded yet will say it
            return True
        from isotrope.search.token_reranking import has_tokens

        return has_tokens(self._maker.encoder)

    def _ready(self) -> VectorMaker:
        if self._maker is None:
            self._maker = self._made(self._loaded())
        return self._maker

    def _loaded(self) -> Encoder:
        from isotrope.encoders.loading import load

        name = self.manifest.model.name
        if name is None:
            raise InputError(
                f"{self.place}: the index was made by an encoder in memory; open it with that encoder, or search with "
                "mode lexical."
            )
        try:
            return load(name)
        except InputError as error:
            raise InputError(f"{self.place}: the model of the index cannot be loaded: {error}") from error

    def _made(self, encoder: Encoder) -> VectorMaker:
        from isotrope.search.vector_maker import VectorMaker

        self.manifest.check_model(encoder.fingerprint(), self.place)
        return VectorMaker(encoder, self.manifest.model.name, self.manifest.dimension)


def check_query(queries: Sequence[str], top: int, mode: str, rerank: int = 0) -> None:
    """Refuse what no index can answer; nothing but the words themselves is looked at, so it can come first."""
    check_between("top", top, 1, MOST)
    if rerank:
        check_between("rerank", rerank, top, MOST_RERANKED)
    if mode not in MODES:
        raise InputError(f"Unknown mode '{mode}'{nearest(mode, MODES)}", "mode")
    for query in queries:
        if not isinstance(query, str):
            raise InputError(f"A query is a text, not {type(query).__name__}.")
        if not query.strip():
            raise InputError("The query is empty.")
        if len(query) > LONGEST:
            raise InputError(f"The query is longer than {LONGEST:,} characters; shorten it.")


def open_index(place: str | os.PathLike[str], encoder: Encoder | None = None, *, stale: bool = False) -> SearchIndex:
    """An index by its place. ``encoder`` must be the one that made it; None: it is loaded when it is needed.

    An index whose text has changed since is refused, unless ``stale``.
    """
    found = parse_place(place)
    engine: Engine
    if found.engine == "folder":
        engine = FolderEngine(Path(found.target))
        check_parts(Path(found.target), engine.manifest.sums)
    else:
        from isotrope.search.milvus_engine import MilvusEngine

        engine = MilvusEngine(found)
    try:
        if not stale:
            engine.manifest.check_text(str(found))
        return SearchIndex(str(found), engine, encoder)
    except BaseException:
        engine.close()
        raise
