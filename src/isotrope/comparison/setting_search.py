"""The search for each method's best settings, before the runs that are compared.

A trial is a run under the same terms, with a random seed and a held-out set that no final run has. It is scored by what
chooses its checkpoint: Spearman or MRR on the eval data, or the label-free score. The tests are not looked at. Trials
are folders of search/, written as they end, so a search that was stopped goes on. What goes wrong: the best of many
trials is flattered by chance, so its score is no result; the final runs are.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from isotrope.comparison.judgement import Failure, Judgement, Outcome, kept_judgement
from isotrope.comparison.line_up import Plan
from isotrope.comparison.method_terms import ask_method
from isotrope.comparison.samplers import Trial, propose
from isotrope.comparison.search_space import Dimension
from isotrope.comparison.search_terms import Search
from isotrope.comparison.terms import Contestant, Task, Terms
from isotrope.comparison.workers import run_all
from isotrope.errors import InputError
from isotrope.files import write_json
from isotrope.progress import bar
from isotrope.training.run_folder import RunFolder

FAILED = "failed.json"
NO_SCORE = "its score is not a number"


@dataclass(frozen=True)
class Hunt:
    """The search of one contestant."""

    contestant: Contestant
    search: Search
    terms: Terms
    fingerprint: str
    folder: Path

    @property
    def dimensions(self) -> tuple[Dimension, ...]:
        return self.search.spaces[self.contestant.label]

    def place(self, number: int) -> Path:
        return self.folder / f"trial-{number}"

    def task(self, number: int, settings: dict[str, Any]) -> Task:
        contestant = replace(self._with(settings, self.terms), label=f"{self.contestant.label}, trial {number}")
        return Task(contestant, self.search.seed, self.terms, self.fingerprint, self.place(number))

    def trials(self) -> list[Trial]:
        """Those that are on disk, ended or begun."""
        return [trial for number in range(self.search.trials) if (trial := self._read(number)) is not None]

    def round(self, size: int) -> list[Task]:
        """At most so many trials that can run at once; one that was begun and did not end goes on first."""
        known = self.trials()
        waiting = [trial for trial in known if not trial.ended]
        taken = {trial.number for trial in known}
        for number in range(self.search.trials):
            if len(waiting) >= size:
                break
            if number not in taken:
                trial = Trial(number, self._proposed(number, known))
                known, waiting = [*known, trial], [*waiting, trial]
        return [self.task(trial.number, trial.settings) for trial in waiting[:size]]

    def best(self, terms: Terms) -> Contestant | Failure:
        """The contestant under the best settings, the first of equals; what the last trial said where all failed."""
        scored = [trial for trial in self.trials() if trial.score is not None]
        if not scored:
            last = self.trials()[-1].failed
            said = f"none of the {self.search.trials} trials of its search ended; the last one: {last}"
            return Failure(self.contestant.label, self.search.seed, said)
        chosen = max(scored, key=lambda trial: (trial.score, -trial.number))
        return self._with(chosen.settings, terms)

    def _proposed(self, number: int, trials: Sequence[Trial]) -> dict[str, Any]:
        given = self.contestant.method.resolved
        return propose(self.search.sampler, self.dimensions, self.search.seed, number, given, trials)

    def _with(self, settings: dict[str, Any], terms: Terms) -> Contestant:
        method = self.contestant.method
        asked = ask_method(method.name, {**method.given, **settings}, terms.settings)
        return replace(self.contestant, method=replace(asked, pooling=method.pooling))

    def _read(self, number: int) -> Trial | None:
        place = self.place(number)
        failed = place / FAILED
        if failed.is_file():
            kept = json.loads(failed.read_text(encoding="utf-8"))
            return Trial(number, self._inside(kept["settings"], place), failed=kept["sentence"])
        facts = RunFolder(place).written_facts()
        if not facts:
            return None
        begun = Trial(number, self._inside(facts["settings"], place))
        ended = kept_judgement(self.task(number, begun.settings))
        if ended is None:
            return begun
        score = ended.measures["score"]
        return replace(begun, score=score) if math.isfinite(score) else replace(begun, failed=NO_SCORE)

    def _inside(self, settings: Mapping[str, Any], place: Path) -> dict[str, Any]:
        """What is searched, of all settings of a trial; one that lies outside was found by another search."""
        found = {one.name: one.found(settings.get(one.name)) for one in self.dimensions}
        for one in self.dimensions:
            if found[one.name] is None:
                raise InputError(
                    f"{place}: this trial was made by another search, {one.name} was {settings.get(one.name)} and "
                    f"the search is over {one}; choose another output."
                )
        return found


def search_settings(plan: Plan, fingerprint: str) -> tuple[Plan, list[Failure]]:
    """The plan with the best settings of each method, and the methods of which no trial ended."""
    if plan.search is None:
        return plan, []
    hunts = list(_hunts(plan, fingerprint))
    done = sum(trial.ended for hunt in hunts for trial in hunt.trials())
    with bar("searching", plan.search.trials * len(hunts), start=done) as advance:
        while tasks := _round(hunts, plan.parallel):
            for outcome in run_all(tasks, plan.parallel):
                _store(outcome, tasks)
                advance(1, note=outcome.name)
    found = [hunt.best(plan.terms) for hunt in hunts]
    contestants = [one for one in found if isinstance(one, Contestant)]
    return replace(plan, contestants=contestants), [one for one in found if isinstance(one, Failure)]


def _hunts(plan: Plan, fingerprint: str) -> Iterator[Hunt]:
    search = plan.search
    assert search is not None
    settings = {**plan.terms.settings, "held_out_seed": search.seed}
    terms = replace(plan.terms, settings=settings, judges=("selection",), retrieval_sets="")
    for one in plan.contestants:
        yield Hunt(one, search, terms, fingerprint, plan.folder / "search" / one.folder_name)


def _round(hunts: Sequence[Hunt], parallel: int) -> list[Task]:
    """The next trials of every method: one each, or as many as keep all workers busy."""
    size = max(-(-parallel // len(hunts)), 1)
    return [task for hunt in hunts for task in hunt.round(size)]


def _store(outcome: Outcome, tasks: Sequence[Task]) -> None:
    """Of a trial its log and its score are kept, not its model."""
    task = next(task for task in tasks if task.label == outcome.name)
    if isinstance(outcome, Judgement):
        shutil.rmtree(task.folder / "model", ignore_errors=True)
        return
    shutil.rmtree(task.folder / "checkpoints", ignore_errors=True)
    write_json(task.folder / FAILED, {"settings": task.contestant.method.given, "sentence": outcome.sentence})
