"""Everything that the page shows, measured: one pass over the subjects, plain JSON values out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.data.leaks import protect
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.benchmark_files import find_task
from isotrope.evaluation.geometry_description import describe_encoded
from isotrope.evaluation.geometry_pairs import describe_pairs
from isotrope.evaluation.label_free import Pairs, measures_of, partner_ranks
from isotrope.evaluation.scored_pairs import POSITIVE_ABOVE, read_pairs
from isotrope.evaluation.sts import TASKS, evaluate_sts
from isotrope.measures.intervals import percentile_interval
from isotrope.measures.unit_vectors import unit_rows
from isotrope.progress import bar, hidden
from isotrope.report import alarms
from isotrope.report import sentence_map as maps
from isotrope.report.subjects import Cast, Subject
from isotrope.report.texts import Texts

RESAMPLES = 500
NEIGHBOURS = 5
QUERIES = 3
Findings = dict[str, Any]
PARTNERS = {"pairs": "the other side of its pair", "neighbours": "the next sentence", "halves": "its other half"}


def measure(
    cast: Cast,
    texts: Texts,
    data_dir: str | os.PathLike[str] | None,
    protected: Sequence[Path],
    queries: Sequence[str],
    seed: int,
) -> Findings:
    """Load each subject once, judge it, describe its space, and let it go."""
    scored: dict[str, Any] = {}
    judged: dict[str, Any] = {}
    shapes: dict[str, Any] = {}
    paired: dict[str, Any] = {}
    vectors: dict[str, maps.Floats] = {}
    asked: dict[str, maps.Floats] = {}
    selected: dict[str, int | None] = {}
    with bar("reporting", len(cast.subjects)) as advance, hidden():
        for subject in cast.subjects:
            name, encoder = subject.name, subject.open()
            selected[name] = encoder.facts.get("selected_step") if subject.role == "run" else None
            shapes[name], found = _described(name, encoder, texts.sample, seed)
            vectors[name] = unit_rows(found).astype(np.float64)
            asked[name] = np.empty((0, found.shape[1]))
            if queries:
                asked[name] = unit_rows(encoder.encode(list(queries))).astype(np.float64)
            if len(texts.pairs[1]) >= 2:
                judged[name] = judge_pairs(encoder, texts.pairs, seed)
            if data_dir is not None:
                scored[name] = evaluate_sts(encoder, data_dir, seed=seed, resamples=RESAMPLES)
                first, second, gold, _ = read_pairs(find_task(Path(data_dir) / "sts", TASKS["STS-B"]))
                paired[name] = asdict(describe_pairs(encoder, first, second, gold.tolist()))
            advance(1, note=name)
    leader = next((one.name for one in cast.subjects if one.role != "start"), cast.subjects[0].name)
    return {
        "subjects": [card(subject, selected[subject.name]) for subject in cast.subjects],
        "text": {
            "name": texts.name,
            "records": texts.total,
            "duplicates": texts.duplicates,
            "sample": len(texts.sample),
            "seed": seed,
        },
        "scores": sts_scores(scored) if scored else text_scores(judged, texts),
        "plane": plane(judged, scored, texts),
        "trails": {run.name: run.trail for run in cast.runs if run.trail},
        "geometry": shapes,
        "pairs": paired,
        "map": lay_out(vectors, texts.sample, leader, seed),
        "neighbours": neighbours(vectors, asked, texts.sample, queries, leader, seed),
        "warnings": alarms.all_warnings(cast, texts, protect(protected) if protected else None, shapes),
        "leaks_looked_for": bool(protected),
        "remarks": cast.remarks,
    }


def card(subject: Subject, selected: int | None) -> dict[str, Any]:
    """Who a subject is, for the head of the page and for its foot."""
    facts = subject.facts
    return {
        "name": subject.name,
        "role": subject.role,
        "start": subject.start,
        "method": facts.get("method"),
        "data": Path(str(facts["source"])).name if facts.get("source") else None,
        "selected_step": selected,
        "settings": facts.get("settings", {}),
        "versions": facts.get("versions", {}),
    }


def judge_pairs(encoder: Encoder, pairs: Pairs, seed: int) -> dict[str, Any]:
    """The label-free measures, and MRR × 100 and its 95 % interval over pairs drawn again."""
    _, first, second = pairs
    both = encoder.encode([*first, *second])
    ranks = partner_ranks(both[: len(first)], both[len(first) :])
    rows = np.random.default_rng(seed).integers(0, len(ranks), size=(RESAMPLES, len(ranks)))
    intervals = {}
    for name, values in (("MRR", 100 / ranks), ("found first", 100.0 * (ranks < 1.5))):
        low, high = percentile_interval(values[rows].mean(axis=1))
        intervals[name] = {"value": float(values.mean()), "low": low, "high": high}
    return {**measures_of(both, pairs), "intervals": intervals}


def _described(name: str, encoder: Encoder, sample: list[str], seed: int) -> tuple[dict[str, Any], Any]:
    try:
        found, vectors = describe_encoded(encoder, sample, seed)
    except InputError as error:  # which of several models it was
        raise InputError(f"{name}: {error}") from error
    return asdict(found), vectors


def sts_scores(results: dict[str, Any]) -> dict[str, Any]:
    """A row a subject: Spearman × 100 by task and on average, with intervals."""
    rows = []
    for name, result in results.items():
        found = result.scores["sts"]
        named = (*TASKS, "average")
        values = {
            task: {"value": found[task]["spearman"], "low": found[task]["low"], "high": found[task]["high"]}
            for task in named
        }
        rows.append({"name": name, "values": values})
    protocol = next(iter(results.values())).protocol
    said = f"Protocol {protocol['protocol']}, aggregation {protocol['aggregation']}, {protocol['interval']}"
    return {"kind": "sts", "measure": "Spearman × 100", "tasks": [*TASKS, "average"], "rows": rows, "protocol": said}


def text_scores(judged: dict[str, Any], texts: Texts) -> dict[str, Any] | None:
    """The same without labels: can a text find its partner?"""
    if not judged:
        return None
    kind, first, _ = texts.pairs
    said = (
        f"Label-free: each of {len(first):,} texts of {texts.name} ({texts.of}) looks for {PARTNERS[kind]}; MRR is the mean of 1 / rank; "
        f"95 % bootstrap of pairs, {RESAMPLES} resamples"
    )
    rows = [{"name": name, "values": found["intervals"]} for name, found in judged.items()]
    return {"kind": "label-free", "measure": "× 100", "tasks": ["MRR", "found first"], "rows": rows, "protocol": said}


def plane(judged: dict[str, Any], results: dict[str, Any], texts: Texts) -> dict[str, Any]:
    """Alignment and uniformity of every subject, on the text's own pairs and on STS-B where it is there."""
    found: dict[str, Any] = {}
    if judged:
        points = {
            name: {"alignment": one["alignment"], "uniformity": one["uniformity"]} for name, one in judged.items()
        }
        said = f"{texts.name}, {texts.of}; a text and {PARTNERS[texts.pairs[0]]}"
        other = (
            f". The trails of {', '.join(texts.elsewhere)} are of the text they held out themselves"
            if texts.elsewhere
            else ""
        )
        found["text"] = {"of": said + other, "points": points}
    if results:
        shapes = {name: result.scores["sts"]["geometry"] for name, result in results.items()}
        points = {
            name: {"alignment": one["alignment"], "uniformity": one["uniformity"]} for name, one in shapes.items()
        }
        found["sts"] = {"of": f"STS-B, pairs with a score above {POSITIVE_ABOVE:g}", "points": points}
    return found


def lay_out(vectors: dict[str, maps.Floats], sample: list[str], leader: str, seed: int) -> dict[str, Any]:
    """A map a subject, each turned to lie as the first; groups are those of one subject, so that colours mean the same
    everywhere.
    """
    groups = maps.group(vectors[leader], seed)
    first: maps.Floats | None = None
    places, near = {}, {}
    for name, own in vectors.items():
        laid = maps.lay_out(own, seed, first)
        first = laid if first is None else first
        places[name] = laid.round(4).tolist()
        near[name] = maps.neighbours(own, NEIGHBOURS)[1].tolist()
    return {
        "texts": sample,
        "groups": groups.tolist(),
        "names": maps.name_groups(sample, groups),
        "grouped_by": leader,
        "places": places,
        "near": near,
    }


def neighbours(
    vectors: dict[str, maps.Floats],
    asked: dict[str, maps.Floats],
    sample: list[str],
    queries: Sequence[str],
    leader: str,
    seed: int,
) -> list[dict[str, Any]]:
    """For each query, the nearest sentences of the sample in every space.

    Without queries: a typical one of each large group.
    """
    if queries:
        rows: list[int | None] = [None] * len(queries)
        said = list(queries)
    else:
        chosen = maps.typical(vectors[leader], maps.group(vectors[leader], seed), QUERIES)
        rows, said = [*chosen], [sample[row] for row in chosen]
    found = []
    for number, (row, query) in enumerate(zip(rows, said, strict=True)):
        columns = {}
        for name, space in vectors.items():
            cosines = space @ (asked[name][number] if row is None else space[row])
            order = [
                int(place) for place in np.argsort(-cosines, kind="stable") if place != row and sample[place] != query
            ]
            columns[name] = [
                {"text": sample[place], "cosine": round(float(cosines[place]), 4)} for place in order[:NEIGHBOURS]
            ]
        found.append({"query": query, "columns": columns})
    return found
