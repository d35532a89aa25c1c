"""What one run of a comparison came to: a judgement, or the sentence that says why there is none. JSON at the edge."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from isotrope.comparison.terms import RunFacts, Task
from isotrope.errors import InputError
from isotrope.files import write_json
from isotrope.training.run_folder import difference

JUDGEMENT = "judgement.json"  # in the folder of its run
LATER = {"keep_start"}  # settings that runs of earlier versions had, and did not name


@dataclass(frozen=True)
class TrainedOn:
    source: str
    record_type: str
    records: int

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> TrainedOn:
        record_type = value["record_type"] if "record_type" in value else value["kind"]  # as files of 0.x call it
        return cls(value["source"], record_type, value["records"])


@dataclass(frozen=True)
class Judgement:
    """A run that ended: what the judge says of its encoder, and what the run measured before its first step."""

    name: str  # the label in the table
    seed: int
    data: TrainedOn
    measures: dict[str, float]
    before: dict[str, float]
    selected_step: int
    warnings: list[str]
    facts: RunFacts

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "facts": self.facts.to_json()}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Judgement:
        data, facts = TrainedOn.from_json(value["data"]), RunFacts.from_json(value["facts"])
        measured = {name: numbers(value[name]) for name in ("measures", "before")}
        return cls(**{**value, **measured, "data": data, "facts": facts})

    def write(self, folder: Path) -> None:
        write_json(folder / JUDGEMENT, self.to_json())


@dataclass(frozen=True)
class Failure:
    """A run that did not end."""

    name: str
    seed: int
    sentence: str


Outcome = Judgement | Failure


def numbers(measures: Mapping[str, float | None]) -> dict[str, float]:
    """As they were measured: JSON has null for what is no number."""
    return {name: math.nan if value is None else value for name, value in measures.items()}


def finished_runs(tasks: Sequence[Task]) -> list[Judgement]:
    """The judgements that an earlier call left, of the same judge; one made under other terms is refused."""
    found = [(task, kept_judgement(task)) for task in tasks]
    return [kept for task, kept in found if kept is not None and kept.facts.judge == task.terms.judge]


def kept_judgement(task: Task) -> Judgement | None:
    """What an earlier call left of this run, whoever judged it: its model can be judged again."""
    file = task.folder / JUDGEMENT
    if not file.is_file():
        return None
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        kept = Judgement.from_json(value)
        before: dict[str, Any] = value["facts"]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{file}: this is not what `isotrope compare` writes.") from error
    for part, now in json.loads(json.dumps(task.facts().to_json())).items():
        if part == "settings":  # one that an earlier version did not know was as it is where it is none
            unknown = {name: value for name, value in now.items() if value is None or name in LATER}
            before = {**before, part: {**unknown, **before.get(part, {})}}
        if part != "judge" and before.get(part) != now:
            raise InputError(
                f"{task.folder}: this run was made under other terms ({part}): "
                f"{difference(before.get(part), now)}; choose another output."
            )
    return kept


FIGURES = re.compile(r"[\d.,]+")


def said_once(runs: Iterable[Judgement]) -> list[str]:
    """Sentences of one method that differ in their figures alone are one, with the figures of the first."""
    said: dict[tuple[str, str], tuple[str, list[int]]] = {}
    for run in runs:
        for sentence in run.warnings:
            said.setdefault((run.name, FIGURES.sub("", sentence)), (sentence, []))[1].append(run.seed)
    return [
        f"{name}, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}: {sentence}"
        for (name, _), (sentence, seeds) in said.items()
    ]
