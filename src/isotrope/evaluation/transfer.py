"""Transfer: how much of a task's classes does a logistic regression find in frozen vectors? SentEval's protocol.

    MR, CR, SUBJ, MPQA    no split: ten folds, each judged by a fit on the other nine;
                          C chosen among these nine by leaving out one more
    TREC, MRPC            C by ten folds of the training part, then a fit on all of it, judged on the test part
    SST2                  C on the dev part, judged on the test part; trained on phrases, as in SentEval

Features are the vector e of a text; for a pair [|u − v|; u·v]. Each fit standardises them over the rows that it learns
from. Every text is encoded once. SST's files differ in their brackets (``-lrb-`` in one, ``(`` in another); all texts
are read with plain ones (``plain_brackets``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.benchmark_files import data_folder, find_task, optional_task
from isotrope.evaluation.folds import FOLDS, STRENGTHS, Outcome, judge
from isotrope.evaluation.linear import Labelled, numbered, read_labelled
from isotrope.evaluation.results import Results, read_out
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.transfer_scores import AverageAccuracy, TaskAccuracy, averaged, summarised
from isotrope.measures.intervals import Interval
from isotrope.progress import bar

PROTOCOL = "transfer-logistic-v2"
TASKS: dict[str, tuple[tuple[str, ...], ...]] = {  # the files of each part, the first that is there
    "MR": (("mr",),),
    "CR": (("cr",),),
    "SUBJ": (("subj",),),
    "MPQA": (("mpqa",),),
    "SST2": (("sst2.phrases.train", "sst2.train"), ("sst2.dev",), ("sst2.test",)),
    "TREC": (("trec.train",), ("trec.test",)),
    "MRPC": (("mrpc.train",), ("mrpc.test",)),
}
PAIRS = ("MRPC",)
BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}", "\\/": "/", "\\*": "*"}
_ESCAPED = re.compile("|".join(map(re.escape, BRACKETS)), re.IGNORECASE)
COLUMNS = ("task", "accuracy", "95 % interval", "F1", "commonest class", "judged")


class Transfer(Suite):
    """What can a linear classifier find in the vectors? SentEval's seven tasks.

    It rewards everything that the vectors still hold, topic and sentiment included, whatever their cosines say: an
    encoder can win here and lose on ``sts``.
    """

    card = SuiteCard(
        name="transfer",
        title="Logistic regression on frozen vectors, seven tasks",
        protocol=PROTOCOL,
        takes=("data_dir", "seeds"),
    )

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        task_files(data_folder(options.data_dir) / "transfer")

    def run(self, encoder: Encoder, options: Options) -> Results:
        return evaluate_transfer(encoder, options.data_dir, options.seeds)

    def summary(self, results: Results) -> dict[str, float]:
        found = results.scores["transfer"]
        tasks = {f"transfer_{task.lower()}": found[task]["accuracy"] for task in TASKS}
        return {"transfer_average": found["average"]["accuracy"], **tasks}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        files = task_files(data_folder(options.data_dir) / "transfer")
        return {
            task: [text for side in read_task(parts[-1], task).texts for text in side] for task, parts in files.items()
        }


def evaluate_transfer(
    encoder: Encoder,
    data_dir: str | os.PathLike[str] | None = None,
    seeds: Sequence[int] = (0,),
    standardise: bool = True,
) -> Results:
    """Accuracy × 100 of the seven tasks, their average, and a 95 % interval each.

    Each seed cuts other folds; scores are the mean over seeds.
    """
    files = task_files(data_folder(data_dir) / "transfer")
    tasks = {task: [read_task(file, task) for file in parts] for task, parts in files.items()}
    every = (text for parts in tasks.values() for part in parts for side in part.texts for text in side)
    vectors = TextVectors.encoded(encoder, every)
    with bar("classifying", len(TASKS)) as advance:
        scores = {}
        for task, parts in tasks.items():
            outcomes = classify(parts, vectors, encoder.device, seeds, standardise)
            scores[task] = summarised(outcomes, with_f1=task in PAIRS)
            advance(1, task)
    average = averaged(list(scores.values()))
    protocol = {
        "protocol": PROTOCOL,
        "classifier": f"logistic regression, C of {STRENGTHS[0]:g} … {STRENGTHS[-1]:g} by inner folds or dev",
        "features": "standardised over the rows of each fit" if standardise else "as they are",
        "SST2 trained on": files["SST2"][0].name.split(".tsv")[0],
        "folds": f"{FOLDS}, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}",
        "interval": "95 %, binomial over the judged texts; of the average normal",
        **read_out(encoder),
    }
    nested = {**{task: score.to_dict() for task, score in scores.items()}, "average": asdict(average)}
    return Results({"transfer": nested}, protocol, COLUMNS, _rows(scores, average))


def task_files(folder: Path) -> dict[str, list[Path]]:
    """The files of each task, part by part."""
    return {task: [_file(folder, names) for names in parts] for task, parts in TASKS.items()}


def classify(
    parts: Sequence[Labelled], vectors: TextVectors, device: torch.device, seeds: Sequence[int], standardise: bool
) -> list[Outcome]:
    """The outcome of each seed; with a dev part nothing is drawn at random, and one seed says all."""
    features = torch.cat([features_of(vectors, part.texts) for part in parts]).to(device)
    labels = [torch.from_numpy(side).to(device) for side in numbered(*(part.labels for part in parts))]
    drawn = seeds if len(parts) < 3 else seeds[:1]
    return [judge(features, labels, np.random.default_rng(seed), standardise) for seed in drawn]


def plain_brackets(text: str) -> str:
    """``-lrb-`` → ``(`` and so on, as the Penn Treebank escapes them; the slash and the asterisk too."""
    return _ESCAPED.sub(lambda found: BRACKETS[found[0].lower()], text)


def read_task(file: Path, task: str) -> Labelled:
    """The texts and labels of a part of a task."""
    texts, labels = read_labelled(file, record_type="labelled-pairs" if task in PAIRS else "labelled")
    return Labelled(tuple([plain_brackets(text) for text in side] for side in texts), labels)


def features_of(vectors: TextVectors, texts: Sequence[list[str]]) -> Tensor:
    """[rows, d] for texts, [rows, 2 d] for pairs."""
    sides = [torch.from_numpy(vectors.of(side)) for side in texts]
    return sides[0] if len(sides) == 1 else torch.cat([(sides[0] - sides[1]).abs(), sides[0] * sides[1]], dim=1)


def _file(folder: Path, names: Sequence[str]) -> Path:
    found = next((file for name in names[:-1] if (file := optional_task(folder, name)) is not None), None)
    return found or find_task(folder, names[-1])


def _rows(scores: dict[str, TaskAccuracy], average: AverageAccuracy) -> list[tuple[str, ...]]:
    rows = [
        (
            *_row(task, score),
            "" if score.f1 is None else f"{score.f1:.2f}",
            f"{score.majority:.1f}",
            f"{score.texts:,}",
        )
        for task, score in scores.items()
    ]
    return [*rows, (*_row("average of seven", average), "", "", "")]


def _row(name: str, score: TaskAccuracy | AverageAccuracy) -> tuple[str, str, str]:
    return name, f"{score.accuracy:.2f}", str(Interval(score.low, score.high))
