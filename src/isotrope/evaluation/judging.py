"""Judge a model by some suites, mark what its training text leaks, and hold it against other models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from isotrope.errors import InputError
from isotrope.evaluation.judged_models import Form, Given, JudgedModel, find_models
from isotrope.evaluation.leak_marks import joined_leaks, mark_leaks, much_leaked
from isotrope.evaluation.results import Results
from isotrope.evaluation.suite import Options
from isotrope.evaluation.suite_runs import PlannedSuite, joined_results, plan_suites, run_suites
from isotrope.evaluation.verdict import Verdict, decide
from isotrope.progress import labelled

Found = list[tuple[str, Results]]  # suite → results


def judge_models(
    encoder: Given,
    suites: str | Sequence[str],
    options: Options,
    against: Sequence[Given] = (),
    pooling: str | None = None,
    leaks: bool = True,
    truncate_dim: int | None = None,
    int8: bool = False,
) -> Results:
    """The results of a model, or of each of its runs, and a verdict for each suite and each other model."""
    planned, left_out = plan_suites(suites, options)
    if against and not any(one.suite.card.has_items for one in planned):
        raise _nothing_to_compare(planned)  # before hours of encoding
    model, *others = find_models([encoder, *against])
    form = Form(pooling, truncate_dim, int8)
    runs = [_judged(model, number, planned, left_out, form, leaks) for number in range(len(model.runs))]
    results = _together(model, runs, left_out)
    verdicts: list[Verdict] = []
    for other in others:
        other_runs = [_judged(other, number, planned, {}, form, False) for number in range(len(other.runs))]
        verdicts += _verdicts(model, other, runs, other_runs, options.seed)
    if others and not verdicts:
        raise _nothing_to_compare(planned)
    return replace(results, verdicts=verdicts)


def _nothing_to_compare(planned: Sequence[PlannedSuite]) -> InputError:
    names = ", ".join(one.name for one in planned)
    return InputError(
        f"{names}: no verdict can be taken, since nothing is scored item by item; evaluate each model by itself, or "
        "choose another suite.",
        setting="against",
    )


def _judged(
    model: JudgedModel,
    number: int,
    planned: Sequence[PlannedSuite],
    left_out: dict[str, str],
    form: Form,
    leaks: bool,
) -> Found:
    place = model.place(number) if form == Form() else None
    own = [replace(one, options=replace(one.options, model=place)) for one in planned]
    with labelled(model.labels[number]):
        found = run_suites(model.opened(number, form), own, left_out)
        return mark_leaks(found, own, model.place(number)) if leaks else found


def _together(model: JudgedModel, runs: Sequence[Found], left_out: dict[str, str]) -> Results:
    """One run as it is; of several each under its name, in scores as in tables."""
    joined = [replace(joined_results(found, left_out), leaks=joined_leaks(found)) for found in runs]
    if len(joined) == 1:
        return joined[0]
    named = [
        replace(
            results,
            scores={label: results.scores},
            tasks=[{"run": label, **task} for task in results.tasks],
        )
        for label, results in zip(model.labels, joined, strict=True)
    ]
    return replace(
        joined_results(list(zip(model.labels, named, strict=True))),
        leaks=joined_leaks([*zip(model.labels, named, strict=True)]),
    )


def _verdicts(
    model: JudgedModel, other: JudgedModel, runs: Sequence[Found], other_runs: Sequence[Found], seed: int
) -> list[Verdict]:
    """One for each suite that has items."""
    found = []
    for suite, results in runs[0]:
        if not results.items or not all(suite in dict(run) for run in (*runs, *other_runs)):
            continue
        sides = [[dict(run)[suite].items for run in side] for side in (runs, other_runs)]
        aggregation = results.protocol.get("aggregation", "all")
        remarks = [] if aggregation == "all" else [f"by aggregation all, not {aggregation}: that has no items"]
        verdict = decide(suite, (model.name, other.name), sides[0], sides[1], seed, remarks=remarks)
        found.append(replace(verdict, leaked=much_leaked(model.name, [dict(run)[suite] for run in runs])))
    return found
