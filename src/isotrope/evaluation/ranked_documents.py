"""The first hundred documents of each query of a set: by an encoder's vectors, and by the baselines."""

from __future__ import annotations

from functools import lru_cache, partial
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch

from isotrope.encoders.encoder import Vectors
from isotrope.evaluation import bm25, lexical, random_baseline
from isotrope.evaluation.bm25 import Bm25, bm25_order
from isotrope.evaluation.lexical import lexical_order
from isotrope.evaluation.random_baseline import random_vectors
from isotrope.evaluation.retrieval_files import RetrievalSet
from isotrope.evaluation.retrieval_scores import DEPTH, Nearest, Rows
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.nearest_rows import top_rows
from isotrope.measures.score_fusion import WEIGHT, fuse

Number = TypeVar("Number", bound=np.generic)
AT_ONCE = 1024  # queries
DIGITS = 7  # to which cosines are told apart
HYBRID = "encoder + BM25"
HYBRID_DESCRIPTION = f"{WEIGHT} z(cosine) + {1 - WEIGHT:.1f} z(BM25), z over the first {DEPTH} of each"


def nearest(found: RetrievalSet, vectors: TextVectors, device: torch.device) -> Nearest:
    """The nearest documents by cosine, on the encoder's device. Of equal cosines the worse document counts as first, so
    that an encoder whose vectors are all alike gains nothing from the order of the file.
    """
    documents, queries = (torch.from_numpy(vectors.of(side)).to(device) for side in (found.documents, found.queries))
    depth = _depth(found)
    parts = [top_rows(block, documents, depth + 1) for block in queries.split(AT_ONCE)]
    cosines, rows = (torch.cat(side).cpu().numpy() for side in zip(*parts, strict=True))
    for number in np.flatnonzero(_level(cosines[:, depth - 1 : depth], cosines[:, depth:])):
        every = (documents @ queries[number]).cpu().numpy()
        own = np.zeros(len(every))
        own[list(found.gains[number])] = list(found.gains[number].values())
        rows[number] = np.lexsort((own, -_rounded(every)))[: depth + 1]
        cosines[number] = every[rows[number]]
    rows, cosines = rows[:, :depth], cosines[:, :depth]
    wanted = zip(rows.tolist(), found.gains, strict=True)
    gains = [[of_query.get(row, 0.0) for row in ranked] for ranked, of_query in wanted]
    order = np.lexsort((np.array(gains), -_rounded(cosines)))
    rows, cosines = (np.take_along_axis(side, order, axis=1) for side in (rows, cosines))
    kept = _kept(rows, found.own)
    return Nearest(_chosen(rows, kept), _chosen(cosines, kept))


def _rounded(cosines: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
    return np.asarray(np.round(cosines.astype(np.float64), DIGITS))


def _level(last: npt.NDArray[np.float32], next_one: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
    """[queries]: whether the last document that counts ties with the next one; which of such are taken is then open."""
    return (_rounded(last) == _rounded(next_one)).any(axis=1)


def baseline_orders(found: RetrievalSet, dimension: int) -> dict[str, Rows]:
    """The order of each baseline, by name."""
    chance = random_vectors((*found.documents, *found.queries), dimension)
    return {**lexical_orders(found), random_baseline.TITLE: nearest(found, chance, torch.device("cpu")).rows}


def hybrid_order(found: RetrievalSet, by_encoder: Nearest, vectors: TextVectors) -> Rows:
    """The encoder's ranking and BM25's joined by their standardised scores; as long as the encoder's."""
    by_words, depth = _bm25(found), by_encoder.rows.shape[1]
    own = [-1] * len(found.queries) if found.own is None else found.own.tolist()
    joined = []
    for number, (query, itself) in enumerate(zip(vectors.of(found.queries), own, strict=True)):
        dense = list(zip(by_encoder.rows[number].tolist(), by_encoder.cosines[number].tolist(), strict=True))
        lexical = [pair for pair in by_words.found(number, _depth(found)) if pair[0] != itself][:DEPTH]

        def cosines(rows: list[int], query: Vectors = query) -> Vectors:
            return vectors.of([found.documents[row] for row in rows]) @ query

        ranked = fuse(dense, lexical, cosines, partial(by_words.scores, number))
        joined.append([one.row for one in ranked[:depth]])
    return np.array(joined)


@lru_cache(maxsize=32)
def _bm25(found: RetrievalSet) -> Bm25:
    return Bm25(found.documents, found.queries)


@lru_cache(maxsize=32)
def lexical_orders(found: RetrievalSet) -> dict[str, Rows]:
    """Those that do not hang on the encoder: kept, as several encoders are judged by one set."""
    both = {lexical.TITLE: lexical_order, bm25.TITLE: bm25_order}
    orders = {title: order(found.documents, found.queries, _depth(found)) for title, order in both.items()}
    return {title: _chosen(rows, _kept(rows, found.own)) for title, rows in orders.items()}


def _depth(found: RetrievalSet) -> int:
    """One more where the query itself is among the documents."""
    return DEPTH if found.own is None else DEPTH + 1


def _kept(rows: Rows, own: Rows | None) -> npt.NDArray[np.bool_]:
    """All places but that of the query itself; but the last one, where the query is not among them."""
    if own is None:
        return np.ones_like(rows, dtype=np.bool_)
    kept = rows != own[:, None]
    kept[kept.all(axis=1), -1] = False
    return kept


def _chosen(values: npt.NDArray[Number], kept: npt.NDArray[np.bool_]) -> npt.NDArray[Number]:
    return values[kept].reshape(len(values), -1)
