"""A planned comparison, in a straight line: judge the start, run what is not there yet, write the table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from isotrope.comparison.common_set import common_set
from isotrope.comparison.comparison_table import FILE, Comparison
from isotrope.comparison.footing import Footing
from isotrope.comparison.judgement import Failure, finished_runs
from isotrope.comparison.judges import Measures, can_judge_start, judge, protocol
from isotrope.comparison.line_up import Plan
from isotrope.comparison.setting_search import search_settings
from isotrope.comparison.terms import LABEL_FREE, Task
from isotrope.comparison.workers import run_all
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.files import explained
from isotrope.leftovers import sweep
from isotrope.locks import FolderLock
from isotrope.progress import bar, hidden, say, spoken_time


def run_comparison(plan: Plan) -> Comparison:
    """Judge the start, make the runs that an earlier call did not, and write the table after each.

    A run that fails is reported, and the others go on.
    """
    encoder = load(plan.terms.model, plan.terms.pooling)
    plan = plan.reading_out(encoder)
    lock = FolderLock(plan.folder)
    with explained(plan.folder):
        plan.folder.mkdir(parents=True, exist_ok=True)
        lock.take()
    try:
        sweep(plan.folder)
        return _run(plan, encoder)
    finally:
        lock.release()


def _run(plan: Plan, encoder: Encoder) -> Comparison:
    fingerprint, device = encoder.fingerprint(), str(encoder.device)
    if plan.search is None:
        finished_runs(plan.tasks(fingerprint))  # refuses other terms before minutes of work
    start = score_start(encoder, fingerprint, plan)
    begun = (plan.folder / FILE).is_file()
    if LABEL_FREE in plan.terms.judges:
        common = common_set(plan.folder, plan.contestants, plan.terms, encoder, fingerprint)
        plan = replace(plan, terms=replace(plan.terms, common_set="none" if common is None else common.name()))
    del encoder  # its memory is for the runs
    if not begun:  # by which the folder is known, should the search be stopped
        Comparison(Footing.of(plan, fingerprint, device), plan.labels, start, [], [], plan.folder).write()
    try:
        plan, failures = search_settings(plan, fingerprint)
        tasks = plan.tasks(fingerprint)
        terms = Footing.of(plan, fingerprint, device)
        found = Comparison(terms, plan.labels, start, finished_runs(tasks), failures, plan.folder)
        found.write()
        return _run_missing(found, tasks, plan.parallel)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; the same call with output {plan.folder} goes on from here") from None


def _run_missing(begun: Comparison, tasks: Sequence[Task], parallel: int) -> Comparison:
    """The comparison with the outcome of every task; its file is written again after each."""
    found = begun
    there = {(run.name, run.seed) for run in begun.runs}
    missing = [task for task in tasks if (task.label, task.seed) not in there]
    began = time.perf_counter()
    with bar("comparing", len(tasks), start=len(there)) as advance:
        for done, outcome in enumerate(run_all(missing, parallel), 1):
            found = found.joined(outcome)
            found.write()
            advance(1, note=f"{outcome.name}, seed {outcome.seed}")
            left = spoken_time((time.perf_counter() - began) / done * (len(missing) - done))
            of = f"run {len(there) + done} of {len(tasks)}, {left} left"
            say(f"{outcome.name}, seed {outcome.seed}: {'failed' if isinstance(outcome, Failure) else 'done'} ({of})")
    return found


def score_start(encoder: Encoder, fingerprint: str, plan: Plan) -> Measures:
    """Empty where no suite can judge the start: its row is then taken from the runs, before their first step."""
    if not can_judge_start(plan.terms):
        return {}
    file = plan.folder / FILE
    if file.is_file():
        earlier = Comparison.read(file)
        now = (fingerprint, protocol(plan.terms))
        if earlier.start and (earlier.terms.fingerprint, earlier.terms.protocol) == now:
            return earlier.start
    with hidden():
        return judge(encoder, plan.terms, {})
