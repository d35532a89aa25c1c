"""Probing: which properties of a sentence does a classifier find in its vector? SentEval's ten tasks.

    surface    SentLen (length, 6 bins), WC (which of some thousand words is there)
    syntax     TreeDepth, TopConst (the constituents below the root), BShift (were two adjacent words swapped?)
    meaning    Tense, SubjNum, ObjNum, SOMO (was a word replaced?), CoordInv (were two clauses swapped?)

Train, dev and test as the files say; the penalty, and where the training stops, by dev; accuracy on test. No task is an
aim in itself: an encoder that forgets word order loses BShift and may be the better one for similarity. The original
files have 100,000, 10,000 and 10,000 sentences each. Tables of the same tasks made of other text (``*.tsv``) are read
too; the table then says "derived", and its figures are not comparable with published ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError, nearest
from isotrope.evaluation.benchmark_files import data_folder, optional_task
from isotrope.evaluation.folds import Outcome
from isotrope.evaluation.items import Items
from isotrope.evaluation.labelled_parts import read_parts
from isotrope.evaluation.linear import Labelled
from isotrope.evaluation.results import Results, read_out
from isotrope.evaluation.senteval_folder import probing_of, read_probing
from isotrope.evaluation.suite import Options, Suite, SuiteCard
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.transfer_protocols import Protocol, find_protocol, right_of
from isotrope.evaluation.transfer_scores import AverageAccuracy, TaskAccuracy, averaged, summarised
from isotrope.measures.intervals import Interval
from isotrope.progress import bar

FOLDER = "probing"
TASKS = {  # the files, the first that is there
    "SentLen": ("sentence_length",),
    "WC": ("word_content",),
    "TreeDepth": ("tree_depth",),
    "TopConst": ("top_constituents", "top_dependents"),
    "BShift": ("bigram_shift",),
    "Tense": ("past_present",),
    "SubjNum": ("subj_number",),
    "ObjNum": ("obj_number",),
    "SOMO": ("odd_man_out",),
    "CoordInv": ("coordination_inversion",),
}
DEFAULT = "senteval"
KNOWN = ("senteval", "senteval-mlp", "senteval-fast")
COLUMNS = ("task", "accuracy", "95 % interval", "commonest class", "classes", "trained on", "judged")


@dataclass(frozen=True)
class ProbingFile:
    """``own``: SentEval's own file; else a table of sentences that were derived by the same definition."""

    task: str
    path: Path
    own: bool

    def parts(self) -> list[Labelled]:
        if self.own:
            return read_probing(str(self.path))
        parts = read_parts(self.path)
        if parts.dev is None:
            raise InputError(f"{self.path}: no row of split dev; a column split with train, dev and test is needed.")
        return [parts.train, parts.dev, parts.test]

    @property
    def title(self) -> str:
        """With the name of its file, where that is another task in the place of SentEval's."""
        name = self.path.name.split(".")[0]
        return self.task if name == TASKS[self.task][0] else f"{self.task} ({name})"


class Probing(Suite):
    """What do the vectors hold of length, words, syntax, tense and number? SentEval's ten probing tasks.

    A description, not a ranking: read each task against its commonest class. ``transfer`` asks for what users classify.
    """

    card = SuiteCard(
        name="probing",
        title="A classifier for linguistic properties, ten tasks",
        protocol="probing-senteval-v1",
        takes=("data_dir", "seeds", "protocol", "tasks"),
    )
    place = 1

    @classmethod
    def check(cls, options: Options) -> None:
        super().check(options)
        find_protocol(options.protocol, DEFAULT, KNOWN)
        find_probing(data_folder(options.data_dir), options.tasks)

    def run(self, encoder: Encoder, options: Options) -> Results:
        """Accuracy × 100 of each task with a 95 % interval, and the average of ten."""
        seeds = options.seeds
        chosen = find_protocol(options.protocol, DEFAULT, KNOWN)
        files = find_probing(data_folder(options.data_dir), options.tasks)
        parts = {task: file.parts() for task, file in files.items()}
        every = (text for sides in parts.values() for part in sides for text in part.texts[0])
        vectors = TextVectors.encoded(encoder, every)
        outcomes: dict[str, list[Outcome]] = {}
        with bar("probing", len(files)) as advance:
            for task, sides in parts.items():
                features = [torch.from_numpy(vectors.of(part.texts[0])).to(encoder.device) for part in sides]
                outcomes[task] = chosen.outcomes(task, sides, features, seeds)
                advance(1, task)
        scores = {task: summarised(each, with_f1=False) for task, each in outcomes.items()}
        average = averaged(list(scores.values())) if set(scores) == set(TASKS) else None
        nested = {
            **{task: score.to_dict() for task, score in scores.items()},
            **({"average": asdict(average)} if average else {}),
        }
        said = _protocol(encoder, chosen, files, parts, seeds)
        items = {task: Items(right_of(each)) for task, each in outcomes.items()}
        return Results({"probing": nested}, said, COLUMNS, _rows(scores, average, files, parts), items=items)

    def summary(self, results: Results) -> dict[str, float]:
        found = results.scores["probing"]
        return {"probing_average": found["average"]["accuracy"]} if "average" in found else {}

    @classmethod
    def judged_texts(cls, options: Options) -> Mapping[str, Sequence[str]]:
        """By task, the sentences of its test part: what must not stand in the training text."""
        files = find_probing(data_folder(options.data_dir), options.tasks)
        return {task: file.parts()[-1].texts[0] for task, file in files.items()}


def find_probing(folder: Path, asked: Sequence[str] | None = None) -> dict[str, ProbingFile]:
    """The file of each task; all ten must be there, unless some were asked for."""
    for name in asked or ():
        if name not in TASKS:
            raise InputError(f"Unknown task '{name}'{nearest(name, TASKS)}", setting="tasks")
    return {task: _find(folder, task) for task in asked or TASKS}


def _find(folder: Path, task: str) -> ProbingFile:
    own, names = probing_of(folder), TASKS[task]
    if own is not None:
        plain = own / f"{names[0]}.txt"
        if not plain.is_file():
            raise InputError(f"{plain} is missing; SentEval's layout was expected.")
        return ProbingFile(task, plain, own=True)
    table = next((file for name in names if (file := optional_task(folder / FOLDER, name)) is not None), None)
    if table is None:
        raise InputError(f"{folder / FOLDER}: {names[0]}.txt, or a table {names[-1]}.tsv.gz, is missing.")
    return ProbingFile(task, table, own=False)


def _protocol(
    encoder: Encoder,
    chosen: Protocol,
    files: Mapping[str, ProbingFile],
    parts: Mapping[str, list[Labelled]],
    seeds: Sequence[int],
) -> dict[str, str]:
    rows = sum(len(part.labels) for sides in parts.values() for part in sides)
    own = all(file.own for file in files.values())
    words = chosen.words(seeds)
    del words["folds"]  # nothing is cut: every file has its parts
    return {
        "protocol": f"probing-{chosen.name}",
        "files": "SentEval's own"
        if own
        else f"derived, not SentEval's: the same definitions on other text, {rows:,} sentences in all; "
        "do not compare with published figures",
        **words,
        "WC": "softmax regression under every protocol",
        "interval": "95 %, binomial over the judged texts; of the average normal",
        **read_out(encoder),
    }


def _rows(
    scores: Mapping[str, TaskAccuracy],
    average: AverageAccuracy | None,
    files: Mapping[str, ProbingFile],
    parts: Mapping[str, list[Labelled]],
) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = [
        (
            *_row(files[task].title, score),
            f"{score.majority:.1f}",
            f"{len(set(parts[task][0].labels)):,}",
            f"{len(parts[task][0].labels):,}",
            f"{score.texts:,}",
        )
        for task, score in scores.items()
    ]
    derived = "" if all(file.own for file in files.values()) else " (derived)"
    return [*rows, (*_row(f"average of ten{derived}", average), "", "", "", "")] if average else rows


def _row(name: str, score: TaskAccuracy | AverageAccuracy) -> tuple[str, str, str]:
    return name, f"{score.accuracy:.2f}", str(Interval(score.low, score.high))
