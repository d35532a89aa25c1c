"""The public function, a straight line: plan, judge the start, run what is not there yet, write the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from isotrope.comparison.comparison_table import Comparison
from isotrope.comparison.footing import Footing
from isotrope.comparison.judgement import finished_runs
from isotrope.comparison.line_up import plan_comparison
from isotrope.comparison.start_scores import score_start
from isotrope.comparison.terms import Data, Files, Place, Task
from isotrope.comparison.workers import run_all
from isotrope.encoders.loading import load
from isotrope.progress import bar


def compare(
    data: Data,
    methods: str | Sequence[str],
    output: Place | None = None,
    *,
    model: Place = "builtin-base",
    pooling: str | None = None,
    seeds: int = 3,
    eval_data: Files | None = None,
    data_dir: Place | None = None,
    aggregation: str = "all",
    suite: str | Sequence[str] | None = None,
    parallel: int = 1,
    own: Mapping[str, Mapping[str, Any]] | None = None,
    **settings: Any,
) -> Comparison:
    """Train each method with each seed from one start, for as many steps, chosen alike; judge every encoder alike.

    ``data``: a file, or several of different record types, of which each method takes the first that it can use (a
    mapping from record type to file says which is which). ``methods``: names, or LABEL=NAME for a method that stands
    twice. ``own``: settings of one method, by label; ``settings`` are the loop's, for all. ``suite``: sts, transfer,
    label-free or own (each method's own task), or several; by default STS where ``data_dir`` (or ISOTROPE_DATA) brings
    the benchmarks, otherwise the label-free score.

    Use it to ask which method does most from one start under one budget; the papers' own budgets are in recipes/.
    The same call goes on where an earlier one with the same ``output`` was stopped: a finished run is not made again.
    A run that fails is reported, and the others go on.
    """
    plan = plan_comparison(
        data,
        methods,
        output,
        model=model,
        pooling=pooling,
        seeds=seeds,
        eval_data=eval_data,
        data_dir=data_dir,
        aggregation=aggregation,
        suite=suite,
        parallel=parallel,
        own=own,
        settings=settings,
    )
    encoder = load(plan.terms.model, plan.terms.pooling)
    fingerprint, device = encoder.fingerprint(), str(encoder.device)
    tasks = plan.tasks(fingerprint)
    kept = finished_runs(tasks)
    start = score_start(encoder, fingerprint, plan)
    del encoder  # its memory is for the runs
    begun = Comparison(Footing.of(plan, fingerprint, device), plan.labels, start, kept, [], plan.folder)
    begun.write()
    return _run_missing(begun, tasks, plan.parallel)


def _run_missing(begun: Comparison, tasks: Sequence[Task], parallel: int) -> Comparison:
    """The comparison with the outcome of every task; its file is written again after each."""
    found = begun
    there = {(run.name, run.seed) for run in begun.runs}
    missing = [task for task in tasks if (task.label, task.seed) not in there]
    try:
        with bar("comparing", len(tasks), start=len(there)) as advance:
            for outcome in run_all(missing, parallel):
                found = found.joined(outcome)
                found.write()
                advance(1, note=f"{outcome.name}, seed {outcome.seed}")
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"stopped; the same call with output {found.folder} goes on from here") from None
    return found
