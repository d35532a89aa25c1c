"""The tasks of ``transfer`` and the files that they are read from: a folder of tables, or SentEval's own folder.

    seven        MR CR SUBJ MPQA SST2 TREC MRPC: all of them must be there, and the average is theirs
    further      SST5, SICK-E, SNLI by classes; SICK-R, STS-B by scores: those that the folder has

SNLI without its training part is trained on the counterfactual items of ``cad_snli.train``, and the table says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from isotrope.errors import InputError, nearest
from isotrope.evaluation import senteval_folder
from isotrope.evaluation.benchmark_files import find_task, optional_task
from isotrope.evaluation.linear import Labelled, read_labelled
from isotrope.evaluation.scored_pairs import ScoredPairs, read_pairs
from isotrope.evaluation.senteval_folder import downstream_of

Parts = tuple[tuple[str, ...], ...]  # the files of each part, the first that is there
TASKS: dict[str, Parts] = {
    "MR": (("mr",),),
    "CR": (("cr",),),
    "SUBJ": (("subj",),),
    "MPQA": (("mpqa",),),
    "SST2": (("sst2.phrases.train", "sst2.train"), ("sst2.dev",), ("sst2.test",)),
    "TREC": (("trec.train",), ("trec.test",)),
    "MRPC": (("mrpc.train",), ("mrpc.test",)),
}
FURTHER: dict[str, Parts] = {
    "SST5": (("transfer/sst5.train",), ("transfer/sst5.dev",), ("transfer/sst5.test",)),
    "SICK-E": (("sts/sick.train",), ("sts/sick.trial",), ("sts/sick.test",)),
    "SNLI": (("nli/snli.train", "nli/cad_snli.train"), ("nli/snli.dev",), ("nli/snli.test",)),
    "SICK-R": (("sts/sick.train",), ("sts/sick.trial",), ("sts/sick.test",)),
    "STS-B": (("sts/stsb.train",), ("sts/stsb.dev",), ("sts/stsb.test",)),
}
SEVEN = "seven"
SCORED = ("SICK-R", "STS-B")
PAIRS = ("MRPC",)  # those with F1
OF_PAIRS = ("MRPC", "SICK-E", "SNLI")
ENTAILMENT = ("sentence1", "sentence2", "entailment")
BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lsb-": "[", "-rsb-": "]", "-lcb-": "{", "-rcb-": "}", "\\/": "/", "\\*": "*"}
_ESCAPED = re.compile("|".join(map(re.escape, BRACKETS)), re.IGNORECASE)


@dataclass(frozen=True)
class TaskFiles:
    """``parts``: one to three of them, a tuple of files each; ``own``: in SentEval's own layout."""

    task: str
    parts: tuple[tuple[str, ...], ...]
    own: bool = False

    @property
    def trained_on(self) -> str:
        """The name of the first file, without its endings."""
        return Path(self.parts[0][0]).name.split(".tsv")[0]

    def labelled(self) -> list[Labelled]:
        if self.own:
            parts = [senteval_folder.read_part(self.task, files) for files in self.parts]
        else:
            parts = [_read(Path(files[0]), self.task) for files in self.parts]
        return [_plain(part) for part in parts]

    def scored(self) -> list[ScoredPairs]:
        if self.own:
            return [senteval_folder.read_scored(self.task, files) for files in self.parts]
        return [read_pairs(files[0]) for files in self.parts]

    def judged_texts(self) -> list[str]:
        """Those of the last part, all columns."""
        last = TaskFiles(self.task, self.parts[-1:], self.own)
        if self.task in SCORED:
            return last.scored()[0].texts
        return [text for side in last.labelled()[0].texts for text in side]


def find_tasks(folder: Path, asked: Sequence[str] | None = None) -> dict[str, TaskFiles]:
    """The files of the tasks that were asked for ("seven": these); without a wish the seven, and the further ones that
    are there.
    """
    known = (*TASKS, *FURTHER)
    for name in asked or ():
        if name not in (*known, SEVEN):
            raise InputError(f"Unknown task '{name}'{nearest(name, (*known, SEVEN))}", setting="tasks")
    names = [task for name in asked or known for task in (TASKS if name == SEVEN else (name,))]
    found = {name: _find(folder, name, asked is not None or name in TASKS) for name in names}
    return {name: files for name, files in found.items() if files is not None}


def task_files(folder: Path) -> dict[str, list[Path]]:
    """The files of the seven tasks, part by part, in a folder of tables."""
    return {task: [_file(folder, names) for names in parts] for task, parts in TASKS.items()}


def read_task(file: Path, task: str) -> Labelled:
    """The texts and labels of a part of a task."""
    return _plain(_read(file, task))


def plain_brackets(text: str) -> str:
    """``-lrb-`` → ``(`` and so on, as the Penn Treebank escapes them; the slash and the asterisk too."""
    return _ESCAPED.sub(lambda found: BRACKETS[found[0].lower()], text)


def _find(folder: Path, task: str, needed: bool) -> TaskFiles | None:
    """None where a file of a task that is not ``needed`` is missing."""
    own = downstream_of(folder)
    if own is not None:
        files = senteval_folder.find_files(own, task)
        if files is None and needed:
            raise InputError(f"{senteval_folder.missing_file(own, task)} is missing; SentEval's layout was expected.")
        return None if files is None else TaskFiles(task, tuple(files), own=True)
    parts = [tuple(f"transfer/{name}" for name in part) for part in TASKS[task]] if task in TASKS else FURTHER[task]
    if not needed and not all(any(optional_task(folder, name) for name in names) for names in parts):
        return None
    return TaskFiles(task, tuple((str(_file(folder, names)),) for names in parts))


def _file(folder: Path, names: Sequence[str]) -> Path:
    found = next((file for name in names[:-1] if (file := optional_task(folder, name)) is not None), None)
    return found or find_task(folder / Path(names[-1]).parent, Path(names[-1]).name)


def _read(file: Path, task: str) -> Labelled:
    columns = ENTAILMENT if task == "SICK-E" else None
    return read_labelled(file, columns, "labelled-pairs" if task in OF_PAIRS else "labelled")


def _plain(part: Labelled) -> Labelled:
    return Labelled(tuple([plain_brackets(text) for text in side] for side in part.texts), part.labels)
