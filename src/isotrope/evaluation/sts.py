"""Semantic textual similarity: STS12–16, STS-B, SICK-R; cosine against people's scores, no regressor.

    score of a task = Spearman(cos(u_i, v_i), gold_i) × 100

For STS12–16 three aggregations are in use, and they differ by up to twenty points for one encoder, so every number
carries its name: ``all`` concatenates a year's subsets (SBERT, SimCSE), ``mean`` averages over subsets, ``wmean``
weighs them by size (BERT-flow, whitening). Test splits only; STS-B's other splits serve its alignment and uniformity.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError, nearest
from isotrope.evaluation.benchmark_files import data_folder, find_task, optional_task
from isotrope.evaluation.items import Items
from isotrope.evaluation.own_pairs import evaluate_own_pairs, own_pairs
from isotrope.evaluation.results import Results, read_out
from isotrope.evaluation.scored_pairs import read_pairs
from isotrope.evaluation.sts_baselines import with_lexical
from isotrope.evaluation.sts_languages import evaluate_language, language_files
from isotrope.evaluation.sts_scores import AverageScore, Benchmark, STSScores, TaskScore, score_tasks, task_cosines
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.correlation import spearman
from isotrope.measures.intervals import Interval

PROTOCOL = "sts-cosine-v1"
TASKS = {
    "STS12": "sts12.test",
    "STS13": "sts13.test",
    "STS14": "sts14.test",
    "STS15": "sts15.test",
    "STS16": "sts16.test",
    "STS-B": "stsb.test",
    "SICK-R": "sick.test",
}
AGGREGATIONS = ("all", "mean", "wmean")
COLUMNS = ("Spearman", "95 % interval", "Pearson", "pairs")


class STS(Suite):
    """Do cosines rank pairs as people do? The default suite, and the field's most reported number.

    It needs no training and no labels but the test's. It says little of retrieval or classification: see ``transfer``.
    """

    card = SuiteCard(
        name="sts",
        title="Semantic textual similarity, seven tasks",
        protocol=PROTOCOL,
        takes=("data_dir", "texts", "columns", "aggregation", "seeds", "resamples", "baselines", "lang"),
        alone=("texts", "columns"),
    )

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        check_aggregation(options.aggregation)
        if options.texts is not None:
            own_pairs(options)
            return
        if options.lang not in (None, "en"):
            language_files(options.lang, data_folder(options.data_dir))
            return
        task_files(data_folder(options.data_dir) / "sts")

    def run(self, encoder: Encoder, options: Options) -> Results:
        if options.texts is not None:
            return evaluate_own_pairs(encoder, options)
        if options.lang not in (None, "en"):
            return evaluate_language(encoder, options.lang, options)
        asked = options.aggregation, options.seed, options.resamples, options.baselines
        return evaluate_sts(encoder, options.data_dir, *asked)

    def main_scores(self, results: Results) -> dict[str, tuple[str, float]]:
        found = {task: score for task, score in results.scores["sts"].items() if "spearman" in score}
        return {task: ("spearman", score["spearman"]) for task, score in found.items()}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        if options.texts is not None:
            return {task: pairs.texts for task, pairs in own_pairs(options).items()}
        folder = data_folder(options.data_dir)
        other = options.lang not in (None, "en")
        files = language_files(str(options.lang), folder) if other else task_files(folder / "sts")
        return {task: read_pairs(file).texts for task, file in files.items()}

    def summary(self, results: Results) -> dict[str, float]:
        found = results.scores["sts"]
        if "geometry" not in found:  # another language, or pairs of your own
            return {"sts_average": found["average"]["spearman"]}
        geometry = {name: found["geometry"][name] for name in ("alignment", "uniformity", "effective_rank")}
        return {"sts_average": found["average"]["spearman"], "sts_b": found["STS-B"]["spearman"], **geometry}


def evaluate_sts(
    encoder: Encoder,
    data_dir: str | os.PathLike[str] | None = None,
    aggregation: str = "all",
    seed: int = 0,
    resamples: int = 500,
    baselines: bool = True,
) -> Results:
    """Spearman and Pearson × 100 of the seven tasks, their average, a 95 % bootstrap interval each, and the geometry of
    STS-B.
    """
    check_aggregation(aggregation)
    benchmark = read_benchmark(data_folder(data_dir) / "sts")
    vectors = TextVectors.encoded(encoder, benchmark.texts(), normalize=True)
    scores = score_tasks(benchmark, vectors, aggregation, np.random.default_rng(seed), resamples)
    protocol = {
        "protocol": PROTOCOL,
        "aggregation": aggregation,
        "interval": f"95 % bootstrap of pairs, {resamples} resamples, seed {seed}",
        **read_out(encoder),
        "STS-B geometry": f"{len(benchmark.stsb)} of 3 splits",
    }
    if aggregation != "all":
        protocol["items"] = "of aggregation all: verdicts are taken by it"
    items = {task: Items(task_cosines(vectors, pairs), pairs.gold) for task, pairs in benchmark.tasks.items()}
    columns = (f"task ({aggregation})", *COLUMNS)
    found = Results({"sts": scores.to_dict()}, protocol, columns, _rows(scores), items=items)
    return with_lexical(found, benchmark, aggregation) if baselines else found


def check_aggregation(aggregation: str) -> None:
    if aggregation not in AGGREGATIONS:
        raise InputError(f"Unknown aggregation '{aggregation}'{nearest(aggregation, AGGREGATIONS)}")


def task_files(folder: Path) -> dict[str, Path]:
    return {task: find_task(folder, name) for task, name in TASKS.items()}


def read_benchmark(folder: Path) -> Benchmark:
    """Every file once."""
    tasks = {task: read_pairs(file) for task, file in task_files(folder).items()}
    files = [optional_task(folder, f"stsb.{split}") for split in ("train", "dev")]
    stsb = [tasks["STS-B"], *(read_pairs(file) for file in files if file is not None)]
    return Benchmark(tasks, stsb)


def spearman_of_file(encoder: Encoder, path: str | os.PathLike[str]) -> float:
    """Spearman of cosine and score over one file of scored pairs: what a checkpoint may be chosen by."""
    pairs = read_pairs(path)
    both = encoder.encode(pairs.texts, normalize_embeddings=True, show_progress_bar=False).astype(np.float64)
    return spearman((both[: len(pairs.gold)] * both[len(pairs.gold) :]).sum(axis=1), pairs.gold)


def _rows(scores: STSScores) -> list[tuple[str, ...]]:
    """A line a task, the average, and the geometry."""
    rows = [_row(task, score, f"{score.pairs:,}") for task, score in scores.tasks.items()]
    geometry = scores.geometry
    last = f"STS-B alignment {geometry.alignment:.4f}, uniformity {geometry.uniformity:.4f}"
    return [*rows, _row("average of seven", scores.average, ""), (last, "", "", "", "")]


def _row(name: str, score: TaskScore | AverageScore, count: str) -> tuple[str, ...]:
    return name, f"{score.spearman:.2f}", str(Interval(score.low, score.high)), f"{score.pearson:.2f}", count
