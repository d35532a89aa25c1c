"""What a comparison holds equal, who takes part in it, and what decides the outcome of one run. Values only."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

LABEL_FREE = "label-free"  # the suite without labels
Place = str | os.PathLike[str]
Files = Place | Sequence[Place]
Data = Place | Sequence[Place] | Mapping[str, Place]  # a mapping goes from record type to file


@dataclass(frozen=True)
class Terms:
    """What is the same for every method."""

    model: str
    pooling: str | None
    settings: dict[str, Any]  # of the loop, as given
    loop: dict[str, Any]  # the same, with the defaults filled in
    eval_data: tuple[str, ...] = ()
    eval_content: tuple[str, ...] = ()  # digests of those files
    data_dir: str | None = None  # None: there are no benchmarks
    aggregation: str = "all"
    judges: tuple[str, ...] = (LABEL_FREE,)  # suites that every encoder is judged by
    retrieval_sets: str = ""  # the names of those that are averaged
    common_set: str = ""  # a digest of the held-out set of all rows

    @property
    def judge(self) -> str:
        """What decides the judges' numbers, in a line."""
        held = f", {self.common_set}" if self.common_set else ""
        more = {"sts": f", {self.aggregation}", "retrieval": f", {self.retrieval_sets}", LABEL_FREE: held}
        return " + ".join(f"{suite}{more.get(suite, '')}" for suite in self.judges)


@dataclass(frozen=True)
class MethodTerms:
    """A method under the settings of a comparison: all that the comparison knows of it."""

    name: str
    given: dict[str, Any]  # settings for this method alone, as given
    pooling: str | None  # for this method alone; None: that of the terms
    resolved: dict[str, Any]  # every setting of the method and of the loop, with the defaults filled in
    loop_defaults: dict[str, Any]  # settings of the loop for which the method has defaults of its own, none given
    files: dict[str, str]  # those that its own settings name, by setting; its own, where it stands outside the package
    record_types: tuple[str, ...]  # in the order in which they are tried
    from_scratch: bool  # it makes its encoder from the data and takes no model
    keeps_last: bool  # the last weights are kept, not those with the best score
    read_out: str | None = None  # the pooling of its paper, taken from a raw start where no other is given


@dataclass(frozen=True)
class Contestant:
    """A row of the table. ``label`` is the method's name, or the name given to it under other settings."""

    label: str
    method: MethodTerms
    data: str
    content: str  # a digest of the data
    setting_files: dict[str, str]  # digests of the files that the method's settings name, by setting

    @property
    def folder_name(self) -> str:
        return folder_name(self.label)

    @property
    def particulars(self) -> dict[str, Any]:
        """What this contestant does not share with the others, by name."""
        start = {"from": "scratch"} if self.method.from_scratch else {}
        pooling = {} if self.method.pooling is None else {"pooling": self.method.pooling}
        return {**start, **pooling, **self.method.loop_defaults, **self.method.given}


@dataclass(frozen=True)
class Start:
    """The model that a run begins with."""

    fingerprint: str
    pooling: str | None


@dataclass(frozen=True)
class RunFacts:
    """What decides the outcome of a run: a finished run is kept where these are the same."""

    method: str
    data: str  # a digest
    model: Start
    settings: dict[str, Any]
    setting_files: dict[str, str] = field(default_factory=dict)  # digests, by setting
    eval_data: list[str] = field(default_factory=list)  # digests
    judge: str = ""

    def to_json(self) -> dict[str, Any]:
        found = asdict(self)
        files = found.pop("setting_files")
        return {**found, **({"files of the settings": files} if files else {})}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> RunFacts:
        known = {name: value[name] for name in ("method", "data", "settings", "eval_data", "judge")}
        return cls(**known, model=Start(**value["model"]), setting_files=value.get("files of the settings", {}))


@dataclass(frozen=True)
class Task:
    """One run: a contestant and a random seed, from a start."""

    contestant: Contestant
    seed: int
    terms: Terms
    fingerprint: str  # of the start
    folder: Path

    @property
    def label(self) -> str:
        return self.contestant.label

    @property
    def name(self) -> str:
        """That of its folder."""
        return f"{self.contestant.folder_name}-seed-{self.seed}"

    @property
    def pooling(self) -> str | None:
        return self.contestant.method.pooling or self.terms.pooling

    @property
    def settings(self) -> dict[str, Any]:
        """What ``train`` is called with."""
        return {**self.terms.settings, **self.contestant.method.given, "seed": self.seed}

    def facts(self) -> RunFacts:
        method, terms = self.contestant.method, self.terms
        return RunFacts(
            method=method.name,
            data=self.contestant.content,
            model=Start(self.fingerprint, self.pooling),
            settings={**method.resolved, "seed": self.seed},
            setting_files=self.contestant.setting_files,
            eval_data=list(terms.eval_content),
            judge=terms.judge,
        )


def folder_name(label: str) -> str:
    """A label without what a file system may refuse."""
    return re.sub(r"[^\w=.+-]+", "-", label)
