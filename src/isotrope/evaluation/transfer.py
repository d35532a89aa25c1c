"""Transfer: how much of a task's classes does a classifier find in frozen vectors? SentEval's downstream tasks.

    MR, CR, SUBJ, MPQA    no split: ten folds, each judged by a fit on the other nine;
                          the penalty chosen among these nine by leaving out one more
    TREC, MRPC            the penalty by ten folds of the training part, then a fit on all of it, the given test
    SST2, SST5, SICK-E,   the penalty on the dev part, judged on the test part; SST2 is trained on phrases
    SNLI
    SICK-R, STS-B         a regressor for scored pairs (relatedness.py), in a table of its own

Features are the vector e of a text; for a pair [|u − v|; u·v], for SNLI [u; v; u·v; |u − v|]. The classifier is that of
the protocol (transfer_protocols.py). The average is that of seven: MR, CR, SUBJ, MPQA, SST2, TREC, MRPC. Every text is
encoded once. SST's files differ in their brackets (``-lrb-`` in one, ``(`` in another); all texts are read with plain
ones (``plain_brackets``).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace

import torch
from torch import Tensor

from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.benchmark_files import data_folder
from isotrope.evaluation.folds import Outcome
from isotrope.evaluation.items import Items
from isotrope.evaluation.linear import Labelled
from isotrope.evaluation.relatedness import Relatedness, predict_scores, related
from isotrope.evaluation.results import Results, Section, read_out
from isotrope.evaluation.scored_pairs import ScoredPairs
from isotrope.evaluation.senteval_classifier import Training
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.transfer_protocols import DEFAULT, Exact, Protocol, check_features, find_protocol, right_of
from isotrope.evaluation.transfer_scores import AverageAccuracy, TaskAccuracy, averaged, summarised
from isotrope.evaluation.transfer_tasks import FURTHER, PAIRS, SCORED, TASKS, TaskFiles, find_tasks
from isotrope.measures.intervals import Interval
from isotrope.progress import bar

PROTOCOL = DEFAULT
COLUMNS = ("task", "accuracy", "95 % interval", "F1", "commonest class", "judged")
SCORED_COLUMNS = ("task", "Spearman", "95 % interval", "Pearson", "squared error", "pairs")


class Transfer(Suite):
    """What can a classifier find in the vectors? SentEval's tasks: seven and their average, and further ones.

    It rewards everything that the vectors still hold, topic and sentiment included, whatever their cosines say: an
    encoder can win here and lose on ``sts``. The data folder may be SentEval's own.
    """

    card = SuiteCard(
        name="transfer",
        title="A classifier on frozen vectors, SentEval's tasks",
        protocol=PROTOCOL,
        takes=("data_dir", "seeds", "resamples", "protocol", "tasks"),
    )
    place = 1

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        find_protocol(options.protocol)
        find_tasks(data_folder(options.data_dir), options.tasks)

    def run(self, encoder: Encoder, options: Options) -> Results:
        return evaluate_transfer(
            encoder,
            options.data_dir,
            options.seeds,
            protocol=options.protocol,
            tasks=options.tasks,
            resamples=options.resamples,
        )

    def summary(self, results: Results) -> dict[str, float]:
        found = results.scores["transfer"]
        tasks = {f"transfer_{task.lower()}": found[task]["accuracy"] for task in TASKS}
        return {"transfer_average": found["average"]["accuracy"], **tasks}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        """By task, the texts of its test items: what must not stand in the training text."""
        files = find_tasks(data_folder(options.data_dir), options.tasks)
        return {task: found.judged_texts() for task, found in files.items()}


def evaluate_transfer(
    encoder: Encoder,
    data_dir: str | os.PathLike[str] | None = None,
    seeds: Sequence[int] = (0,),
    standardise: bool = True,
    protocol: str | None = None,
    tasks: Sequence[str] | None = None,
    resamples: int = 500,
) -> Results:
    """Accuracy × 100 of each task, the average of the seven, and a 95 % interval each; correlations of scored tasks.

    Each seed cuts other folds; scores are the mean over seeds. ``tasks``: some of them only; without all of the seven
    there is no average. ``standardise`` false takes it out of the default protocol.
    """
    chosen = find_protocol(protocol)
    if isinstance(chosen, Exact) and not standardise:
        chosen = replace(chosen, standardise=False)
    files = find_tasks(data_folder(data_dir), tasks)
    labelled = {task: found.labelled() for task, found in files.items() if task not in SCORED}
    scored = {task: found.scored() for task, found in files.items() if task in SCORED}
    vectors = TextVectors.encoded(encoder, _texts(labelled, scored))
    outcomes, predicted = {}, {}
    with bar("classifying", len(files)) as advance:
        for task, parts in labelled.items():
            outcomes[task] = classify(task, parts, vectors, encoder.device, seeds, chosen)
            advance(1, task)
        for task, pairs in scored.items():
            features = [features_of(vectors, (part.first, part.second)).to(encoder.device) for part in pairs]
            check_features(features)
            predicted[task] = predict_scores(features, pairs[0].gold, pairs[1].gold, Training())
            advance(1, task)
    scores = {task: summarised(each, with_f1=task in PAIRS) for task, each in outcomes.items()}
    scored_scores = {task: related(each, scored[task][2], seeds[0], resamples) for task, each in predicted.items()}
    average = averaged([scores[task] for task in TASKS]) if set(TASKS) <= set(scores) else None
    nested = {
        **{task: score.to_dict() for task, score in scores.items()},
        **({"average": asdict(average)} if average else {}),
        **{task: score.to_dict() for task, score in scored_scores.items()},
    }
    items = {
        **{task: Items(right_of(each)) for task, each in outcomes.items()},
        **{task: Items(each, scored[task][2].gold) for task, each in predicted.items()},
    }
    said = _protocol(encoder, chosen, files, seeds, asked=tasks is not None, resamples=resamples)
    sections = [Section("A trained regressor", SCORED_COLUMNS, _scored_rows(scored_scores))] if scored_scores else []
    return Results({"transfer": nested}, said, COLUMNS, _rows(scores, average, files), sections, items)


def classify(
    task: str,
    parts: Sequence[Labelled],
    vectors: TextVectors,
    device: torch.device,
    seeds: Sequence[int],
    protocol: Protocol,
) -> list[Outcome]:
    """The outcome of each seed; with a dev part nothing is drawn at random, and one seed says all."""
    features = [features_of(vectors, part.texts, both=task == "SNLI").to(device) for part in parts]
    return protocol.outcomes(task, parts, features, seeds)


def features_of(vectors: TextVectors, texts: Sequence[list[str]], both: bool = False) -> Tensor:
    """[rows, d] for texts, [rows, 2 d] for pairs, [rows, 4 d] with ``both`` vectors themselves before them."""
    sides = [torch.from_numpy(vectors.of(side)) for side in texts]
    if len(sides) == 1:
        return sides[0]
    apart, product = (sides[0] - sides[1]).abs(), sides[0] * sides[1]
    return torch.cat([*sides, product, apart] if both else [apart, product], dim=1)


def _texts(labelled: Mapping[str, list[Labelled]], scored: Mapping[str, list[ScoredPairs]]) -> Iterator[str]:
    for parts in labelled.values():
        for part in parts:
            for side in part.texts:
                yield from side
    for pairs in scored.values():
        for each in pairs:
            yield from each.texts


def _protocol(
    encoder: Encoder,
    chosen: Protocol,
    files: Mapping[str, TaskFiles],
    seeds: Sequence[int],
    asked: bool,
    resamples: int,
) -> dict[str, str]:
    """Everything that moves the numbers, and what is missing."""
    missing = [] if asked else [task for task in FURTHER if task not in files]
    scored = any(task in files for task in SCORED)
    return {
        "protocol": chosen.name,
        **chosen.words(seeds),
        **{f"{task} trained on": files[task].trained_on for task in ("SST2", "SNLI") if task in files},
        **({"left out": f"{', '.join(missing)}: no files of theirs"} if missing else {}),
        **({"regressor": f"linear and softmax over 5 scores, Adam, seed {Training.seed}"} if scored else {}),
        "interval": "95 %, binomial over the judged texts; of the average normal"
        + (f"; of Spearman a bootstrap of pairs, {resamples} resamples" if scored else ""),
        **read_out(encoder),
    }


def _rows(
    scores: Mapping[str, TaskAccuracy], average: AverageAccuracy | None, files: Mapping[str, TaskFiles]
) -> list[tuple[str, ...]]:
    """The seven, their average, then the further tasks."""
    lines = {
        task: (
            *_row(_title(files[task]), score),
            "" if score.f1 is None else f"{score.f1:.2f}",
            f"{score.majority:.1f}",
            f"{score.texts:,}",
        )
        for task, score in scores.items()
    }
    mean = [(*_row("average of seven", average), "", "", "")] if average else []
    seven = [line for task, line in lines.items() if task in TASKS]
    return [*seven, *mean, *(line for task, line in lines.items() if task not in TASKS)]


def _scored_rows(scores: Mapping[str, Relatedness]) -> list[tuple[str, ...]]:
    return [
        (
            task,
            f"{score.spearman:.2f}",
            str(Interval(score.low, score.high)),
            f"{score.pearson:.2f}",
            f"{score.mse:.3f}",
            f"{score.pairs:,}",
        )
        for task, score in scores.items()
    ]


def _title(files: TaskFiles) -> str:
    """With the text that it was trained on, where that is not its own."""
    foreign = files.task == "SNLI" and not files.own and not files.trained_on.startswith("snli")
    return f"{files.task} (trained on {files.trained_on})" if foreign else files.task


def _row(name: str, score: TaskAccuracy | AverageAccuracy) -> tuple[str, str, str]:
    return name, f"{score.accuracy:.2f}", str(Interval(score.low, score.high))
