"""Retrieval: does the cosine of a query and a document rank the documents that answer it first?

    score of a set = mean over its queries of nDCG@10 × 100, next to MRR@10 and recall@100

Exact search over all documents of a set; graded gains; no training, no second stage. The average is the plain mean of
the sets that the data folder holds, so it compares only where the sets are the same.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import torch

from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.benchmark_files import data_folder
from isotrope.evaluation.lexical import DESCRIPTION, TITLE, lexical_order
from isotrope.evaluation.results import Results, read_out
from isotrope.evaluation.retrieval_files import RetrievalSet, SetFiles, find_sets, read_set
from isotrope.evaluation.retrieval_scores import DEPTH, RankingScore, SetScore, averaged, rank
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.intervals import Interval
from isotrope.measures.nearest_rows import top_rows

PROTOCOL = "retrieval-exact-v1"
AT_ONCE = 1024  # queries
Rows = npt.NDArray[np.int64]
COLUMNS = ("set", "ranked by", "nDCG@10", "95 % interval", "MRR@10", "recall@100", "queries", "documents")


class Retrieval(Suite):
    """Does a query find its documents? nDCG@10 on every retrieval set of the data folder, next to TF-IDF.

    It asks for what search needs: one short text against many long ones. An encoder that is good at ``sts`` often loses
    to TF-IDF here, where queries share rare words with their documents, and long documents are cut at the encoder's
    length. ``answers`` ranks a few candidate sentences instead.
    """

    card = SuiteCard(
        name="retrieval",
        title="Documents ranked for queries, every set of the data folder",
        protocol=PROTOCOL,
        takes=("data_dir", "seeds", "resamples"),
    )

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        read_sets(options.data_dir)

    def run(self, encoder: Encoder, options: Options) -> Results:
        return evaluate_retrieval(encoder, options.data_dir, options.seed, options.resamples)

    def summary(self, results: Results) -> dict[str, float]:
        found = results.scores["retrieval"]
        sets = {f"retrieval_{name}_ndcg": found[name]["ndcg_10"] for name in found if name != "average"}
        return {"retrieval_average": found["average"]["ndcg_10"], **sets}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        return {found.name: found.queries for found, _ in read_sets(options.data_dir)}


def evaluate_retrieval(
    encoder: Encoder, data_dir: str | os.PathLike[str] | None = None, seed: int = 0, resamples: int = 500
) -> Results:
    """nDCG@10, MRR@10 and recall@100, × 100, of each set and their average; the same of TF-IDF.

    Intervals are those of nDCG, by a bootstrap of the queries.
    """
    sets, orders = zip(*read_sets(data_dir), strict=True)
    every = (text for found in sets for text in (*found.documents, *found.queries))
    vectors = TextVectors.encoded(encoder, every, normalize=True)
    rng = np.random.default_rng(seed)
    ranked = [
        [rank(found, order, rng, resamples) for order in (nearest(found, vectors, encoder.device), words)]
        for found, words in zip(sets, orders, strict=True)
    ]
    scores = {
        found.name: SetScore(both[0].score(), both[1].score(), len(found.queries), len(found.documents))
        for found, both in zip(sets, ranked, strict=True)
    }
    average, lexical = (averaged(side) for side in zip(*ranked, strict=True))
    protocol = {
        "protocol": PROTOCOL,
        "search": f"exact, cosine, first {DEPTH} of all documents; a document is its title and its text",
        "length": f"texts cut at {encoder.max_length} tokens",
        "gains": "linear, as graded",
        "interval": f"95 % bootstrap of queries, {resamples} resamples, seed {seed}",
        TITLE: DESCRIPTION,
        **read_out(encoder),
        "queries left out": f"{sum(found.unjudged for found in sets)} without a relevant document",
    }
    overall = {**asdict(average), "lexical": asdict(lexical)}
    nested = {**{name: score.to_dict() for name, score in scores.items()}, "average": overall}
    return Results({"retrieval": nested}, protocol, COLUMNS, _rows(scores, average, lexical))


def nearest(found: RetrievalSet, vectors: TextVectors, device: torch.device) -> Rows:
    """[queries, depth]: the rows of the nearest documents, on the encoder's device."""
    documents, queries = (torch.from_numpy(vectors.of(side)).to(device) for side in (found.documents, found.queries))
    rows = [
        top_rows(queries[start : start + AT_ONCE], documents, DEPTH)[1] for start in range(0, len(queries), AT_ONCE)
    ]
    return np.asarray(torch.cat(rows).cpu().numpy())


def read_sets(data_dir: str | os.PathLike[str] | None) -> list[tuple[RetrievalSet, Rows]]:
    """Every set of the folder, with its order by TF-IDF."""
    return [prepared(files, files.state()) for files in find_sets(data_folder(data_dir))]


@lru_cache(maxsize=32)
def prepared(files: SetFiles, state: tuple[tuple[int, int], ...]) -> tuple[RetrievalSet, Rows]:
    """A set and its order by TF-IDF. A comparison judges dozens of encoders: what does not hang on the encoder is kept.

    ``state`` is the size and time of each file: one that was changed is read again.
    """
    found = read_set(files)
    return found, lexical_order(found.documents, found.queries, DEPTH)


def _rows(scores: Mapping[str, SetScore], average: RankingScore, lexical: RankingScore) -> list[tuple[str, ...]]:
    """Two lines a set: the encoder, and TF-IDF."""
    rows = []
    for name, score in scores.items():
        sizes = f"{score.queries:,}", f"{score.documents:,}"
        rows += [(name, *_cells("encoder", score.encoder), *sizes), ("", *_cells(TITLE, score.lexical), "", "")]
    return [
        *rows,
        ("average of sets", *_cells("encoder", average), "", ""),
        ("", *_cells(TITLE, lexical), "", ""),
    ]


def _cells(ranked_by: str, score: RankingScore) -> tuple[str, ...]:
    interval = str(Interval(score.low, score.high))
    return ranked_by, f"{score.ndcg_10:.2f}", interval, f"{score.mrr_10:.2f}", f"{score.recall_100:.2f}"
