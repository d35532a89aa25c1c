"""Measure everything that the page shows: one pass over the subjects, each loaded once."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isotrope.data.leaks import protect
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.benchmark_files import find_task
from isotrope.evaluation.geometry_description import TextGeometry, describe_encoded
from isotrope.evaluation.geometry_pairs import PairGeometry, describe_pairs
from isotrope.evaluation.label_free import Pairs, measures_of, partner_ranks
from isotrope.evaluation.layer_suite import LayerSweep, read_splits, sweep_layers
from isotrope.evaluation.results import Results
from isotrope.evaluation.scored_pairs import read_pairs
from isotrope.evaluation.sts import TASKS, evaluate_sts
from isotrope.measures.intervals import percentile_interval
from isotrope.measures.unit_vectors import unit_rows
from isotrope.progress import labelled
from isotrope.report import alarms
from isotrope.report import sentence_map as maps
from isotrope.report.checkpoint_planes import eval_plane
from isotrope.report.findings import Findings, Point, Score, SubjectCard, TextFacts
from isotrope.report.map_layout import around_queries, around_typical, lay_out_spaces
from isotrope.report.score_tables import RESAMPLES, PairJudgement, planes, sts_scores, text_scores
from isotrope.report.subjects import Cast, Subject
from isotrope.report.texts import Texts


@dataclass(frozen=True)
class Measured:
    """All that is taken from one encoder before it is let go."""

    card: SubjectCard
    shape: TextGeometry
    vectors: maps.Floats  # of the sample, [sentences, d], unit length
    asked: maps.Floats  # of the queries
    judged: PairJudgement | None  # None: the text has no natural pairs
    sts: Results | None  # None: there are no benchmarks
    pairs: PairGeometry | None
    sweep: LayerSweep | None


def measure(
    cast: Cast,
    texts: Texts,
    data_dir: str | os.PathLike[str] | None,
    protected: Sequence[Path],
    queries: Sequence[str],
    seed: int,
) -> Findings:
    """Load each subject once, judge it, describe its space, and let it go."""
    found: dict[str, Measured] = {}
    for number, subject in enumerate(cast.subjects, 1):
        with labelled(f"{subject.name} ({number} of {len(cast.subjects)})"):  # a subject takes minutes with benchmarks
            found[subject.name] = measure_subject(subject, texts, data_dir, queries, seed)
    leader = next((one.name for one in cast.subjects if one.role != "start"), cast.subjects[0].name)
    cards = {name: one.card for name, one in found.items()}
    shapes = {name: one.shape for name, one in found.items()}
    spaces = {name: one.vectors for name, one in found.items()}
    asked = {name: one.asked for name, one in found.items()}
    judged = {name: one.judged for name, one in found.items() if one.judged is not None}
    results = {name: one.sts for name, one in found.items() if one.sts is not None}
    near = (
        around_queries(spaces, asked, texts.sample, queries)
        if queries
        else around_typical(spaces, texts.sample, leader, seed)
    )
    return Findings(
        subjects=[*cards.values()],
        text=TextFacts(texts.name, texts.total, texts.duplicates, len(texts.sample), seed),
        scores=sts_scores(results) if results else text_scores(judged, texts),
        plane={
            **planes(judged, results, texts),
            **eval_plane(cast.runs, {name: one.card for name, one in found.items()}),
        },
        trails={run.name: run.trail for run in cast.runs if run.trail},
        geometry=shapes,
        pairs={name: one.pairs for name, one in found.items() if one.pairs is not None},
        read_outs={name: one.sweep for name, one in found.items() if one.sweep is not None},
        map=lay_out_spaces(spaces, texts.sample, leader, seed),
        neighbours=near,
        warnings=alarms.all_warnings(cast, texts, protect(protected) if protected else None, shapes),
        leaks_looked_for=bool(protected),
        remarks=[*cast.remarks, *(alarms.unread_texts(cast.runs) if protected else [])],
        compared=cast.compared,
    )


def measure_subject(
    subject: Subject, texts: Texts, data_dir: str | os.PathLike[str] | None, queries: Sequence[str], seed: int
) -> Measured:
    encoder = subject.open()
    try:
        described, vectors = describe_encoded(encoder, texts.sample, seed)
    except InputError as error:  # which of several models it was
        raise InputError(f"{subject.name}: {error}") from error
    sts, pairs, sweep = None, None, None
    if data_dir is not None:
        sts = evaluate_sts(encoder, data_dir, seed=seed, resamples=RESAMPLES, baselines=False)
        first, second, gold, _ = read_pairs(find_task(Path(data_dir) / "sts", TASKS["STS-B"]))
        pairs = describe_pairs(encoder, first, second, gold.tolist())
        sweep = sweep_layers(encoder, read_splits(Path(data_dir) / "sts"), seed, RESAMPLES)
    return Measured(
        card=card(subject, encoder),
        shape=described,
        vectors=unit_rows(vectors).astype(np.float64),
        asked=_asked(encoder, queries, vectors.shape[1]),
        judged=judge_pairs(encoder, texts.pairs, seed) if len(texts.pairs[1]) >= 2 else None,
        sts=sts,
        pairs=pairs,
        sweep=sweep,
    )


def _asked(encoder: Encoder, queries: Sequence[str], width: int) -> maps.Floats:
    if not queries:
        return np.empty((0, width))
    return unit_rows(encoder.encode(list(queries))).astype(np.float64)


def card(subject: Subject, encoder: Encoder) -> SubjectCard:
    facts = subject.facts
    return SubjectCard(
        name=subject.name,
        role=subject.role,
        start=subject.start,
        method=facts.get("method"),
        data=Path(str(facts["source"])).name if facts.get("source") else None,
        selected_step=encoder.facts.get("selected_step") if subject.role == "run" else None,
        settings=facts.get("settings", {}),
        versions=facts.get("versions", {}),
        worth=facts.get("worth", {}),
    )


def judge_pairs(encoder: Encoder, pairs: Pairs, seed: int) -> PairJudgement:
    """The label-free measures, and MRR × 100 and its 95 % interval over pairs drawn again."""
    _, first, second = pairs
    both = encoder.encode([*first, *second])
    ranks = partner_ranks(both[: len(first)], both[len(first) :])
    rows = np.random.default_rng(seed).integers(0, len(ranks), size=(RESAMPLES, len(ranks)))
    scores = {}
    for name, values in (("MRR", 100 / ranks), ("found first", 100.0 * (ranks < 1.5))):
        scores[name] = Score(float(values.mean()), *percentile_interval(values[rows].mean(axis=1)))
    measures = measures_of(both, pairs)
    return PairJudgement(Point(measures["alignment"], measures["uniformity"]), scores)
