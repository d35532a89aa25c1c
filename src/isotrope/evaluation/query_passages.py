"""Queries and the passages that answer them, from a file of pairs: what checkpoints can be chosen by without scores.

    MRR = 100/n Σ_i 1 / rank of the first passage of query i        nDCG@10: measures/ranking_measures.py

Every passage of the file is a candidate of every query, by cosine. A query that stands on several rows has several
passages, and a passage may answer several queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from isotrope.data.sentence_files import Place, records_of
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.measures.ranking_measures import ndcg, reciprocal_rank

FEWEST = 2  # passages; one alone is always first
NEAREST = 10  # ranks that nDCG looks at


class QueryPassages(NamedTuple):
    """``own[i]`` are the places in ``passages`` of those that belong to ``queries[i]``."""

    queries: list[str]
    passages: list[str]
    own: list[set[int]]


def read_query_passages(source: Place | Sequence[Any], columns: Sequence[str] | None = None) -> QueryPassages:
    """The pairs of a file, or of a list; rows without a text are refused."""
    where, records = records_of(source, "pairs", columns)
    places: dict[str, int] = {}
    own: dict[str, set[int]] = {}
    for record in records:
        if not all(record.texts):
            raise InputError(f"{where}:{record.line}: a text of the pair is empty; fill it in, or take the row out.")
        query, passage = record.texts
        own.setdefault(query, set()).add(places.setdefault(passage, len(places)))
    if len(places) < FEWEST:
        raise InputError(f"{where}: at least {FEWEST} different passages were expected, {len(places)} found.")
    return QueryPassages(list(own), list(places), list(own.values()))


def passage_measures(encoder: Encoder, files: Sequence[QueryPassages]) -> dict[str, float]:
    """``eval_mrr`` and ``eval_ndcg10``, × 100, each the mean of the files."""
    found = [_of_file(encoder, one) for one in files]
    return {name: sum(one[name] for one in found) / len(found) for name in found[0]} if found else {}


def _of_file(encoder: Encoder, pairs: QueryPassages) -> dict[str, float]:
    texts = [*pairs.queries, *pairs.passages]
    vectors = encoder.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    queries, passages = vectors[: len(pairs.queries)], vectors[len(pairs.queries) :]
    order = np.argsort(-(queries @ passages.T), axis=1, kind="stable")
    gains = np.zeros(order.shape)
    for row, own in enumerate(pairs.own):
        gains[row] = np.isin(order[row], list(own))
    return {
        "eval_mrr": 100 * float(reciprocal_rank(gains, first=len(passages)).mean()),
        "eval_ndcg10": 100 * float(ndcg(gains, [[1.0] * len(own) for own in pairs.own], NEAREST).mean()),
    }
