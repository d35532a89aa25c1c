"""Additions to hybrid search that were tried: each on development sets, against search as it is.

    python benchmarks/search_additions.py DATA [--models builtin,builtin-static] [--cache FOLDER]

nDCG@10 × 100 of the sets of benchmarks/fusion.py, none of which is reported. The candidates are those of hybrid search.

    pairs of words    BM25 of two neighbouring stems is added to BM25
    builtin-static    z(cosine) of a second model is the third term
    feedback          the query's vector moves towards the mean of the first hits (Rocchio)
    expansion         the words with most weight in the first hits are the third term (as in RM3)
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from fusion import (
    DEPTH,
    Floats,
    Found,
    against,
    candidates,
    cosines,
    development,
    deviations,
    head,
    line,
    quality,
    stems_of,
    vectors,
)
from scipy.sparse import csr_matrix

from isotrope.measures.score_fusion import WEIGHT
from isotrope.search.query_words import words_of
from isotrope.search.word_index import K1, B
from isotrope.search.word_postings import postings

FIRST_HITS, NEW_WORDS = 5, 10
SECOND = "builtin-static"
Rows = npt.NDArray[np.int64]
Words = list[list[str]]


class Bm25(NamedTuple):
    """``weights``: [words, documents]; ``asked``: [queries, words], how often each is asked for."""

    weights: csr_matrix
    asked: csr_matrix

    def scores(self) -> Floats:
        return np.asarray((self.asked @ self.weights).toarray(), dtype=np.float64)

    def expanded(self, hits: Sequence[Rows]) -> Floats:
        """Scores by the heaviest words of each query's first hits."""
        found = []
        for rows in hits:
            heavy = np.asarray(self.weights[:, rows[:FIRST_HITS]].sum(axis=1)).ravel()
            words = np.argsort(-heavy, kind="stable")[:NEW_WORDS]
            found.append(self.weights[words].T @ heavy[words])
        return np.array(found)


def bm25(documents: Words, queries: Words) -> Bm25:
    vocabulary, stored = postings(documents, K1, B)
    shape = len(vocabulary), len(documents)
    known = [[vocabulary[word] for word in words if word in vocabulary] for words in queries]
    rows, columns = np.repeat(np.arange(len(known)), [len(one) for one in known]), np.concatenate(known).astype(int)
    return Bm25(
        csr_matrix((stored["data"], stored["indices"], stored["indptr"]), shape=shape),
        csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(queries), shape[0])),
    )


def neighbours(texts: Words) -> Words:
    return [[f"{one} {two}" for one, two in itertools.pairwise(words)] for words in texts]


def ranked(dense: Floats, lexical: Floats, third: Floats | None = None, share: float = 0.0) -> list[Rows]:
    """By hybrid's scores; ``share`` of the third score comes on top."""
    found = []
    for number, pair in enumerate(zip(dense, lexical, strict=True)):
        pool = candidates(*pair, DEPTH)
        scores = WEIGHT * standard(pool.scores[0]) + (1 - WEIGHT) * standard(pool.scores[1])
        if third is not None:
            scores += share * standard(third[number][pool.rows])
        found.append(pool.rows[np.argsort(-scores, kind="stable")])
    return found


def standard(scores: Floats) -> Floats:
    return deviations(scores, scores, 0)


def orders(found: Found, name: str, model: str, cache: Path | None) -> dict[str, list[Rows]]:
    stem, dense = stems_of(found), cosines(found, name, model, cache)
    documents, queries = ([words_of(text, stem) for text in texts] for texts in (found.documents, found.queries))
    words, pairs = bm25(documents, queries), bm25(neighbours(documents), neighbours(queries)).scores()
    lexical = words.scores()
    made = {"search": ranked(dense, lexical)}
    for share in (0.1, 0.2, 0.3):
        made[f"pairs of words, {share}"] = ranked(dense, lexical + share * pairs)
    if model != SECOND:
        for share in (0.1, 0.2):
            made[f"{SECOND}, {share}"] = ranked(dense, lexical, cosines(found, name, SECOND, cache), share)
    asked = vectors(found.queries, f"{model}.{name}.q", model, cache)
    known = vectors(found.documents, f"{model}.{name}.d", model, cache)
    for share in (0.2, 0.4):
        moved = np.stack(
            [
                one + share * known[rows[:FIRST_HITS]].mean(axis=0)
                for one, rows in zip(asked, made["search"], strict=True)
            ]
        )
        moved /= np.linalg.norm(moved, axis=1, keepdims=True)
        made[f"feedback, {share}"] = ranked(np.asarray(moved @ known.T, dtype=np.float64), lexical)
    for share in (0.1, 0.2):
        made[f"expansion, {share}"] = ranked(dense, lexical, words.expanded(made["search"]), share)
    return made


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path, help="the folder of evaluation data")
    options.add_argument("--models", default="builtin,builtin-static")
    options.add_argument("--cache", type=Path, help="a folder that keeps vectors between calls")
    chosen = options.parse_args()
    sets = development(chosen.data)
    for model in chosen.models.split(","):
        values: dict[str, list[Floats]] = {}
        for name, found in sets.items():
            for label, order in orders(found, name, model, chosen.cache).items():
                values.setdefault(label, []).append(quality(order, found))
        head(model, sets)
        used: dict[str, list[Floats]] = {}
        for label, some in values.items():
            print(line(label, [one.mean() for one in some]) + against(used, model, some), flush=True)


if __name__ == "__main__":
    main()
