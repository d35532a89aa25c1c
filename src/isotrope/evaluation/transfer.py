"""Transfer: how much of a task's classes does a logistic regression find in vectors that stay as they are? SentEval's
protocol.

    MR, CR, SUBJ, MPQA    no split: ten folds, each judged by a fit on the other nine;
                          C chosen among these nine by leaving out one more
    TREC, MRPC            C by ten folds of the training part, then a fit on all of it, judged on the test part
    SST2                  C on the dev part, judged on the test part; trained on phrases, as in SentEval

Features are the vector e of a text; for a pair [|u − v|; u·v]. Every text is encoded once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.folds import FOLDS, STRENGTHS, Outcome, judge
from isotrope.evaluation.linear import Texts, numbered, read_labelled, standardised
from isotrope.evaluation.results import Results, read_out
from isotrope.evaluation.sts import data_folder, find_task
from isotrope.measures.classification import f1_of_classes
from isotrope.progress import bar

PROTOCOL = "transfer-logistic-v1"
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


@dataclass(frozen=True)
class Part:
    texts: Texts
    labels: list[str]


def evaluate_transfer(
    encoder: Encoder,
    data_dir: str | os.PathLike[str] | None = None,
    seeds: Sequence[int] = (0,),
    standardise: bool = True,
) -> Results:
    """Accuracy × 100 of the seven tasks, their average, and a 95 % interval each.

    Each seed cuts the folds anew; scores are their mean.
    """
    folder = data_folder(data_dir) / "transfer"
    files = {task: [_file(folder, names) for names in parts] for task, parts in TASKS.items()}
    parts = {task: [_read(file, task) for file in found] for task, found in files.items()}
    texts = sorted({text for found in parts.values() for part in found for side in part.texts for text in side})
    vectors = torch.from_numpy(encoder.encode(texts)).to(encoder.device)
    index = {text: number for number, text in enumerate(texts)}

    scores: dict[str, Any] = {}
    with bar("classifying", len(TASKS) * len(seeds)) as advance:
        for task, found in parts.items():
            features = torch.cat([_features(vectors, index, part.texts) for part in found])
            features = standardised(features, len(found[0].labels)) if standardise else features
            labels = [torch.from_numpy(side).to(features.device) for side in numbered(*(part.labels for part in found))]
            outcomes = []
            for seed in seeds if len(found) < 3 else seeds[:1]:  # with a dev part there is no chance in it
                outcomes.append(judge(features, labels, np.random.default_rng(seed)))
                advance(1)
            scores[task] = _summary(outcomes, task in PAIRS)
    average = _average([scores[task] for task in TASKS])
    protocol = {
        "protocol": PROTOCOL,
        "classifier": f"logistic regression, C of {STRENGTHS[0]:g} … {STRENGTHS[-1]:g} by inner folds or dev",
        "features": "standardised" if standardise else "as they are",
        "SST2 trained on": files["SST2"][0].name.split(".tsv")[0],
        "folds": f"{FOLDS}, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}",
        "interval": "95 % bootstrap of the judged texts",
        **read_out(encoder),
    }
    rows = [
        (
            task,
            f"{s['accuracy']:.2f}",
            f"{s['low']:.1f} – {s['high']:.1f}",
            f"{s['f1']:.2f}" if "f1" in s else "",
            f"{s['majority']:.1f}",
            f"{s['texts']:,}",
        )
        for task, s in scores.items()
    ]
    rows.append(
        ("average of seven", f"{average['accuracy']:.2f}", f"{average['low']:.1f} – {average['high']:.1f}", "", "", "")
    )
    columns = ("task", "accuracy", "95 % interval", "F1", "commonest class", "judged")
    return Results({"transfer": {**scores, "average": average}}, protocol, columns, rows)


def _file(folder: Path, names: Sequence[str]) -> Path:
    found = (find_task(folder, name, needed=name == names[-1]) for name in names)
    return next(file for file in found if file is not None)


def _read(file: Path, task: str) -> Part:
    return Part(*read_labelled(file, kind="labelled-pairs" if task in PAIRS else "labelled"))


def _features(vectors: Tensor, index: dict[str, int], texts: Texts) -> Tensor:
    sides = [vectors[[index[text] for text in side]] for side in texts]
    return sides[0] if len(sides) == 1 else torch.cat([(sides[0] - sides[1]).abs(), sides[0] * sides[1]], dim=1)


def _average(scores: Sequence[dict[str, Any]]) -> dict[str, float]:
    """The mean over tasks; the interval is that of a sum of independent binomials, taken as normal."""
    mean = float(np.mean([score["accuracy"] for score in scores]))
    reach = (
        1.96
        * float(np.sqrt(sum(score["accuracy"] * (100 - score["accuracy"]) / score["texts"] for score in scores)))
        / len(scores)
    )
    return {"accuracy": mean, "low": mean - reach, "high": mean + reach}


def _summary(outcomes: Sequence[Outcome], with_f1: bool) -> dict[str, Any]:
    from scipy import stats

    accuracies = [outcome.accuracy for outcome in outcomes]
    accuracy, wanted = float(np.mean(accuracies)), outcomes[0].wanted
    low, high = stats.binom.ppf([0.025, 0.975], len(wanted), accuracy) / len(
        wanted
    )  # what endless resampling would give
    found = {
        "accuracy": 100 * accuracy,
        "low": 100 * float(low),
        "high": 100 * float(high),
        "majority": 100 * float(wanted.bincount().max() / len(wanted)),
        "texts": len(wanted),
        "strengths": [strength for outcome in outcomes for strength in outcome.strengths],
    }
    if len(accuracies) > 1:
        found["deviation"] = 100 * float(np.std(accuracies, ddof=1))
    if with_f1:
        found["f1"] = 100 * float(
            np.mean([float(f1_of_classes(each.found, each.wanted, 2)[1].nan_to_num()) for each in outcomes])
        )
    return found
