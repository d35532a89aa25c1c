"""Transfer: how much of a task's classes does a logistic regression find in vectors that stay as they are? SentEval's protocol.

    MR, CR, SUBJ, MPQA    no split: ten folds, each judged by a fit on the other nine; C chosen among these nine by leaving out one more
    TREC, MRPC            C by ten folds of the training part, then a fit on all of it, judged on the test part
    SST2                  C on the dev part, judged on the test part; trained on phrases, as in SentEval

Features are the vector e of a text; for a pair [|u − v|; u·v]. Every text is encoded once.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from torch import Tensor

from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.linear import Texts, numbered, read_labelled, standardised
from isotrope.evaluation.logistic import fit_many
from isotrope.evaluation.results import Results
from isotrope.evaluation.sts import data_folder, find_task
from isotrope.progress import bar

PROTOCOL = "transfer-logistic-v1"
FOLDS = 10
STRENGTHS = tuple(2.0**power for power in range(-2, 4))
STRENGTHS_WITH_TEST = tuple(2.0**power for power in range(-1, 6))  # of TREC and MRPC, in SentEval's own grid
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


@dataclass(frozen=True)
class Outcome:
    """``found`` and ``wanted``: the classes of the judged texts. ``accuracy``: of folds the mean, which SentEval reports."""

    accuracy: float
    found: Tensor
    wanted: Tensor
    strengths: list[float]


def evaluate_transfer(
    encoder: Encoder, data_dir: str | os.PathLike[str] | None = None, seeds: Sequence[int] = (0,), standardise: bool = True
) -> Results:
    """Accuracy × 100 of the seven tasks, their average, and a 95 % interval each. Each seed cuts the folds anew; scores are their mean."""
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
                outcomes.append(_judge(features, labels, np.random.default_rng(seed)))
                advance(1)
            scores[task] = _summary(outcomes)
    average = float(np.mean([scores[task]["accuracy"] for task in TASKS]))
    protocol = {
        "protocol": PROTOCOL,
        "classifier": "logistic regression, C by " + ("nested folds, folds or dev" if len(TASKS) > 1 else ""),
        "features": "standardised" if standardise else "as they are",
        "SST2 trained on": files["SST2"][0].name.split(".tsv")[0],
        "folds": f"{FOLDS}, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}",
        "interval": "95 % bootstrap of the judged texts",
        "pooling": encoder.pooling.name,
        **({"space": " + ".join(space["name"] for space in encoder.facts["spaces"])} if encoder.facts.get("spaces") else {}),
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
    rows.append(("average of seven", f"{average:.2f}", "", "", "", ""))
    columns = ("task", "accuracy", "95 % interval", "F1", "commonest class", "judged")
    return Results({"transfer": {**scores, "average": {"accuracy": average}}}, protocol, columns, rows)


def _file(folder: Path, names: Sequence[str]) -> Path:
    found = (find_task(folder, name, needed=name == names[-1]) for name in names)
    return next(file for file in found if file is not None)


def _read(file: Path, task: str) -> Part:
    return Part(*read_labelled(file, kind="labelled-pairs" if task in PAIRS else "labelled"))


def _features(vectors: Tensor, index: dict[str, int], texts: Texts) -> Tensor:
    sides = [vectors[[index[text] for text in side]] for side in texts]
    return sides[0] if len(sides) == 1 else torch.cat([(sides[0] - sides[1]).abs(), sides[0] * sides[1]], dim=1)


def _judge(features: Tensor, labels: list[Tensor], rng: np.random.Generator) -> Outcome:
    """``features`` are those of all parts, one after another: one part alone, train and test, or train, dev and test."""
    if len(labels) == 1:
        return by_folds(features, labels[0], rng)
    learn, *judge = features.split([len(side) for side in labels])
    if len(labels) == 3:
        return by_dev(learn, labels[0], judge[0], labels[1], judge[1], labels[2])
    return by_test(learn, labels[0], judge[0], labels[1], rng)


def by_folds(features: Tensor, labels: Tensor, rng: np.random.Generator) -> Outcome:
    """Nested: C of a fold is the best when another fold is left out as well, over all nine others.

    A fit without folds i and j serves both, so 45 pairs are enough for what would be 90 fits of each C.
    """
    folds = torch.from_numpy(stratified(labels.cpu().numpy(), rng)).to(labels.device)
    member = torch.nn.functional.one_hot(folds, FOLDS).bool()
    pairs = list(itertools.combinations(range(FOLDS), 2))
    outside = torch.stack([~(member[:, i] | member[:, j]) for i, j in pairs], dim=1)
    right = _right(features, labels, outside, STRENGTHS)  # [rows, pairs, strengths]
    share = torch.einsum("nf,npc->fpc", member.float(), right.float()) / member.sum(dim=0)[:, None, None]
    chosen = []
    for fold in range(FOLDS):
        others = [(pair, i + j - fold) for pair, (i, j) in enumerate(pairs) if fold in (i, j)]
        chosen.append(int(torch.stack([share[other, pair] for pair, other in others]).mean(dim=0).argmax()))
    strengths = [STRENGTHS[place] for place in chosen]
    found = fit_many(features, labels, ~member, torch.tensor(strengths, device=labels.device)).classes(features)
    own = found.gather(1, folds[:, None])[:, 0]
    accuracy = torch.stack([(own == labels)[member[:, fold]].float().mean() for fold in range(FOLDS)]).mean()
    return Outcome(float(accuracy), own, labels, strengths)


def by_test(learn: Tensor, labels: Tensor, judge: Tensor, wanted: Tensor, rng: np.random.Generator) -> Outcome:
    folds = torch.from_numpy(stratified(labels.cpu().numpy(), rng)).to(labels.device)
    member = torch.nn.functional.one_hot(folds, FOLDS).bool()
    right = _right(learn, labels, ~member, STRENGTHS_WITH_TEST)
    share = torch.einsum("nf,nfc->fc", member.float(), right.float()) / member.sum(dim=0)[:, None]
    strength = STRENGTHS_WITH_TEST[int(share.mean(dim=0).argmax())]
    whole = torch.ones(len(labels), 1, dtype=torch.bool, device=labels.device)
    found = fit_many(learn, labels, whole, torch.tensor([strength], device=labels.device)).classes(judge)[:, 0]
    return Outcome(float((found == wanted).float().mean()), found, wanted, [strength])


def by_dev(learn: Tensor, labels: Tensor, dev: Tensor, dev_labels: Tensor, judge: Tensor, wanted: Tensor) -> Outcome:
    whole = torch.ones(len(labels), len(STRENGTHS), dtype=torch.bool, device=labels.device)
    fits = fit_many(learn, labels, whole, torch.tensor(STRENGTHS, device=labels.device))
    best = int((fits.classes(dev) == dev_labels[:, None]).float().mean(dim=0).argmax())
    found = fits.classes(judge)[:, best]
    return Outcome(float((found == wanted).float().mean()), found, wanted, [STRENGTHS[best]])


def stratified(labels: Any, rng: np.random.Generator) -> Any:
    """Of each row its fold: each class is shuffled and dealt out in turn, so that folds differ by a row of a class at most."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    folds = np.empty(len(labels), dtype=np.int64)
    folds[order] = np.arange(len(labels)) % FOLDS
    return folds


def _right(features: Tensor, labels: Tensor, parts: Tensor, strengths: Sequence[float]) -> Tensor:
    """[rows, parts, strengths]: is the class found by the fit on a part with a strength?"""
    each = torch.tensor(strengths, device=labels.device).repeat(parts.shape[1])
    fits = fit_many(features, labels, parts.repeat_interleave(len(strengths), dim=1), each)
    return (fits.classes(features) == labels[:, None]).unflatten(1, (parts.shape[1], len(strengths)))


def _summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    accuracies = [outcome.accuracy for outcome in outcomes]
    accuracy, wanted = float(np.mean(accuracies)), outcomes[0].wanted
    low, high = stats.binom.ppf([0.025, 0.975], len(wanted), accuracy) / len(wanted)  # what endless resampling would give
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
    if len(wanted.unique()) == 2:
        found["f1"] = 100 * float(np.mean([_f1(outcome) for outcome in outcomes]))
    return found


def _f1(outcome: Outcome) -> float:
    """Of the class 1."""
    hits = int(((outcome.found == 1) & (outcome.wanted == 1)).sum())
    return 2 * hits / max(int((outcome.found == 1).sum() + (outcome.wanted == 1).sum()), 1)
