"""Retrieval: does the cosine of a query and a document rank the documents that answer it first?

    score of a set = mean over its queries of nDCG@10 × 100, next to MRR@10, recall@10 and recall@100

Exact search over all documents of a set; graded gains; no training, no second stage. Captions that look for those of
the same picture are a set of their own kind. The average is the plain mean of the sets with queries and documents that
the data folder holds (of the captions where it has no other), so it compares only where the sets are the same.
Pairs of your own are a set too: the first text of each looks for the second among those of all.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from isotrope.data.sentence_files import Texts
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.word_vectors import ENDLESS
from isotrope.errors import InputError
from isotrope.errors import nearest as suggestion
from isotrope.evaluation import bm25, lexical, random_baseline
from isotrope.evaluation.benchmark_files import data_folder
from isotrope.evaluation.caption_files import CaptionFile, find_captions, neighbours
from isotrope.evaluation.items import Items
from isotrope.evaluation.query_passages import read_query_passages
from isotrope.evaluation.ranked_documents import HYBRID, HYBRID_DESCRIPTION, baseline_orders, hybrid_order, nearest
from isotrope.evaluation.results import ENCODER, Results, Section, nested_sides, read_out
from isotrope.evaluation.retrieval_files import RetrievalSet, SetFiles, find_sets
from isotrope.evaluation.retrieval_scores import (
    DEPTH,
    Ranked,
    RankingScore,
    Rows,
    SetScore,
    averaged,
    rank,
)
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.intervals import Interval

PROTOCOL = "retrieval-exact-v1"
COLUMNS = (
    "set", "ranked by", "nDCG@10", "95 % interval", "MRR@10", "recall@10", "recall@100", "queries", "documents",
)  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """``ranked``: the encoder's ranking, then those of the baselines, by name."""

    found: RetrievalSet
    ranked: dict[str, Ranked]
    sections: tuple[Section, ...] = ()

    def score(self) -> SetScore:
        first, *others = [(name, each.score()) for name, each in self.ranked.items()]
        return SetScore(first[1], dict(others), len(self.found.queries), len(self.found.documents))


class Retrieval(Suite):
    """Does a query find its documents? nDCG@10 on every retrieval set of the data folder, or on pairs of your own.

    "encoder + BM25" joins the two rankings by their standardised scores, as ``isotrope search`` does by default.
    It asks for what search needs: one short text against many long ones. An encoder that is good at ``sts`` often loses
    to BM25 here, where queries share rare words with their documents, and long documents are cut at the encoder's
    length. ``answers`` ranks a few candidate sentences instead.
    """

    card = SuiteCard(
        name="retrieval",
        title="Documents ranked for queries, every set of the data folder or pairs of your own",
        protocol=PROTOCOL,
        takes=("data_dir", "texts", "columns", "tasks", "seeds", "resamples", "baselines"),
        alone=("texts", "columns", "tasks"),
    )

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        _asked_sets(options)

    def run(self, encoder: Encoder, options: Options) -> Results:
        """nDCG@10, MRR@10, recall@10 and recall@100, × 100, of each set and their average; the same of the baselines.

        Intervals are those of nDCG, by a bootstrap of the queries.
        """
        seed, resamples, baselines = options.seed, options.resamples, options.baselines
        sets = _asked_sets(options)
        vectors = TextVectors.encoded(
            encoder, (text for found in sets for text in (*found.documents, *found.queries)), normalize=True
        )
        places = [] if options.texts is not None else [files.name for files in _files(options.data_dir)]
        numbers = [places.index(found.name) if places else 0 for found in sets]  # the same where some are named
        judged = [
            _judge(found, encoder, vectors, (seed, number), resamples, baselines)
            for number, found in zip(numbers, sets, strict=True)
        ]
        scores = {each.found.name: each.score() for each in judged}
        whole = [each for each in judged if each.found.own is None] or judged
        averages = {name: averaged([each.ranked[name] for each in whole]) for name in judged[0].ranked}
        protocol = {
            "protocol": PROTOCOL,
            "search": f"exact, cosine, first {DEPTH} of all documents; a document is its title and its text; ties lose",
            "average": " + ".join(each.found.name for each in whole),
            "length": "whole texts" if encoder.max_length >= ENDLESS else f"texts cut at {encoder.max_length} tokens",
            "gains": "linear, as graded",
            "interval": f"95 % bootstrap of queries, {resamples} resamples, seed {seed}",
            **(_described(encoder.dimension) if baselines else {}),
            **read_out(encoder),
            "queries left out": f"{sum(found.unjudged for found in sets)} without a relevant document",
        }
        nested = {**{name: score.to_dict() for name, score in scores.items()}, "average": nested_sides(averages)}
        items = {each.found.name: Items(each.ranked[ENCODER].values["ndcg_10"]) for each in judged}
        sections = [section for each in judged for section in each.sections]
        return Results({"retrieval": nested}, protocol, COLUMNS, _rows(scores, averages), sections, items)

    def summary(self, results: Results) -> dict[str, float]:
        found = results.scores["retrieval"]
        sets = {f"retrieval_{name}_ndcg": found[name]["ndcg_10"] for name in found if name != "average"}
        return {"retrieval_average": found["average"]["ndcg_10"], **sets}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        return {found.name: found.queries for found in _asked_sets(options)}


def _asked_sets(options: Options) -> list[RetrievalSet]:
    """Pairs of your own where they are given, else the sets of the data folder, or those of them that are named."""
    if options.texts is None:
        return read_sets(options.data_dir, options.tasks)
    if options.tasks is not None:
        raise InputError("tasks names sets of the data folder, and texts are pairs of your own; leave one of them out.")
    return [pairs_as_set(options.texts, options.columns)]


def pairs_as_set(source: Texts, columns: Sequence[str] | None = None) -> RetrievalSet:
    """Every second text of the pairs is a document, and answers the queries that it stands next to."""
    pairs = read_query_passages(source, columns)
    name = Path(source).name.split(".")[0] if isinstance(source, str | os.PathLike) else "pairs"
    gains = [dict.fromkeys(sorted(own), 1.0) for own in pairs.own]
    return RetrievalSet(name, pairs.passages, pairs.queries, gains, unjudged=0)


def read_sets(data_dir: str | os.PathLike[str] | None, named: Sequence[str] | None = None) -> list[RetrievalSet]:
    """Every set of the folder, or those that are ``named``; captions last."""
    found = _files(data_dir)
    known = [files.name for files in found]
    for name in named or ():
        if name not in known:
            raise InputError(
                f"{data_folder(data_dir)}: no retrieval set is named '{name}'{suggestion(name, known)}", setting="tasks"
            )
    return [_kept(files, files.state()) for files in found if named is None or files.name in named]


def _files(data_dir: str | os.PathLike[str] | None) -> list[SetFiles | CaptionFile]:
    folder = data_folder(data_dir)
    found: list[SetFiles | CaptionFile] = [*find_sets(folder), *find_captions(folder)]
    if not found:
        raise InputError(
            f"{folder}: no retrieval set found; NAME.corpus.tsv, NAME.queries.tsv and NAME.qrels.tsv are expected, "
            "or NAME_captions.test.tsv."
        )
    return found


@lru_cache(maxsize=32)
def _kept(files: SetFiles | CaptionFile, state: tuple[tuple[int, int], ...]) -> RetrievalSet:
    """A comparison judges dozens of encoders: what does not hang on the encoder is kept.

    ``state`` is the size and time of each file: one that was changed is read again.
    """
    return files.read()


def _judge(
    found: RetrievalSet,
    encoder: Encoder,
    vectors: TextVectors,
    seeds: tuple[int, int],
    resamples: int,
    baselines: bool,
) -> Judged:
    """The rankings of one set. Each set has draws of its own, the same for the encoder and the baselines."""
    by_encoder = nearest(found, vectors, encoder.device)
    orders: dict[str, Rows] = {ENCODER: by_encoder.rows}
    if baselines:
        orders[HYBRID] = hybrid_order(found, by_encoder, vectors)
        orders.update(baseline_orders(found, encoder.dimension))
    ranked = {name: rank(found, order, np.random.default_rng(seeds), resamples) for name, order in orders.items()}
    return Judged(found, ranked, () if found.own is None else (neighbours(found, by_encoder, seeds[0]),))


def _described(dimension: int) -> dict[str, str]:
    return {
        HYBRID: HYBRID_DESCRIPTION,
        lexical.TITLE: lexical.DESCRIPTION,
        bm25.TITLE: bm25.DESCRIPTION,
        random_baseline.TITLE: random_baseline.described(dimension),
    }


def _rows(scores: Mapping[str, SetScore], averages: Mapping[str, RankingScore]) -> list[tuple[str, ...]]:
    """A set's lines: the encoder, and each baseline."""
    rows = []
    for name, score in scores.items():
        rows.append((name, *_cells(ENCODER, score.encoder), f"{score.queries:,}", f"{score.documents:,}"))
        rows += [("", *_cells(title, other), "", "") for title, other in score.baselines.items()]
    for number, (title, average) in enumerate(averages.items() if len(scores) > 1 else ()):
        rows.append(("" if number else "average of sets", *_cells(title, average), "", ""))
    return rows


def _cells(ranked_by: str, score: RankingScore) -> tuple[str, ...]:
    interval = str(Interval(score.low, score.high))
    shares = score.mrr_10, score.recall_10, score.recall_100
    return ranked_by, f"{score.ndcg_10:.2f}", interval, *(f"{value:.2f}" for value in shares)
