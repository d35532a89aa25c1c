"""One suite or several, run over an encoder: which of them, in which order, at what cost, and as one result.

Several suites share their vectors (vector_cache.py). ``all`` is every suite that the data folder has the files of; one
that cannot run is left out, and a line says why.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import torch

from isotrope.encoders.cut_texts import counting_cut
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.results import Results, Section
from isotrope.evaluation.suite import Options, Suite, find_suite, registry
from isotrope.evaluation.suite_lanes import pays, side_by_side
from isotrope.evaluation.task_records import task_records
from isotrope.evaluation.vector_cache import shared_vectors
from isotrope.progress import labelled, say

ALL = "all"
TOGETHER = "seconds of all suites"  # by the clock; suites that ran side by side have more in sum


@dataclass(frozen=True)
class PlannedSuite:
    """A suite under its name, with the options that it takes; ``named`` is false where ``all`` was asked for."""

    name: str
    suite: Suite
    options: Options
    named: bool = True


def plan_suites(names: str | Sequence[str], options: Options) -> tuple[list[PlannedSuite], dict[str, str]]:
    """The suites that will run, checked before a model is loaded; and those that ``all`` leaves out, with reasons."""
    asked = list(dict.fromkeys(names.split(",") if isinstance(names, str) else names))
    if not asked or not all(asked):
        raise InputError(f"No suite given; choose {', '.join([*registry(), ALL])}.", setting="suite")
    if ALL in asked:
        return _everything(options)
    found = [PlannedSuite(name, find_suite(name)(), options) for name in asked]
    if len(found) > 1:
        _check_taken(found, options)
        found = [replace(one, options=_taken(one.suite, options)) for one in found]
    for one in found:
        type(one.suite).check(one.options)
    return found, {}


def run_suites(
    encoder: Encoder, planned: Sequence[PlannedSuite], left_out: dict[str, str] | None = None
) -> list[tuple[str, Results]]:
    """The results of each suite, by name. Each text is encoded once.

    A suite of ``all`` that refuses the model is added to ``left_out``, so that the others are not lost.
    """
    left_out = {} if left_out is None else left_out
    start = time.perf_counter()
    with shared_vectors():
        if pays(encoder, len(planned)):
            order = sorted(planned, key=lambda one: one.suite.place)
            jobs = [partial(_attempt, encoder, one, number, len(order)) for number, one in enumerate(order, 1)]
            made = dict(zip([one.name for one in order], side_by_side(jobs), strict=True))
        else:
            made = {one.name: _attempt(encoder, one, number, len(planned)) for number, one in enumerate(planned, 1)}
    seconds = round(time.perf_counter() - start, 2)
    found = []
    for one in planned:
        each = made[one.name]
        if isinstance(each, InputError):
            left_out[one.name] = str(each)
        else:
            found.append((one.name, replace(each, cost={**each.cost, TOGETHER: seconds}) if len(made) > 1 else each))
    if not found:
        raise _nothing_runs(left_out)
    for name, reason in left_out.items():
        say(f"{name} is left out: {reason}")
    return found


def _attempt(encoder: Encoder, one: PlannedSuite, number: int, count: int) -> Results | InputError:
    """Its results; of a suite of ``all`` that refuses the model, the refusal."""
    with labelled(one.name if count == 1 else f"{one.name} ({number} of {count})"):
        try:
            return _run(encoder, one)
        except InputError as error:
            if one.named:
                raise
            return error


def joined_results(found: Sequence[tuple[str, Results]], left_out: Mapping[str, str] | None = None) -> Results:
    """One result of several: tables under each other, scores and protocols nested by suite."""
    if len(found) == 1 and not left_out:
        return found[0][1]
    sections = []
    for name, results in found:
        tables = results.tables()
        tables[0] = replace(tables[0], title=" · ".join(filter(None, (name, tables[0].title))))
        sections += tables
    if left_out:
        rows = [(name, reason) for name, reason in left_out.items()]
        sections.append(Section("left out", ("suite", "why"), rows, caption=" "))
    scores: dict[str, Any] = {}
    for _, results in found:
        for key, value in results.scores.items():  # all tasks of MTEB stand under one key
            scores[key] = {**scores[key], **value} if key in scores else value
    return Results(
        scores=scores,
        protocol={
            **{name: results.protocol for name, results in found},
            **({"left out": dict(left_out)} if left_out else {}),
        },
        sections=sections,
        items={f"{name}/{task}": items for name, results in found for task, items in results.items.items()},
        tasks=[task for _, results in found for task in results.tasks],
        cost=_joined_cost(found),
    )


def _run(encoder: Encoder, one: PlannedSuite) -> Results:
    cuda = encoder.device.type == "cuda"
    if cuda:
        torch.cuda.reset_peak_memory_stats(encoder.device)
    start = time.perf_counter()
    with shared_vectors() as cache, counting_cut() as counted:
        before = cache.encoded, cache.found
        results = one.suite.run(encoder, one.options)
        texts = {"texts encoded": cache.encoded - before[0], "taken from the cache": cache.found - before[1]}
    counted.say()
    texts |= {f"texts cut at {counted.max_length:,} tokens": counted.cut} if counted.cut else {}
    cost: dict[str, Any] = {"seconds": round(time.perf_counter() - start, 2), **_resident()}
    if cuda:
        cost["peak CUDA memory (MB)"] = round(torch.cuda.max_memory_allocated(encoder.device) / 1e6)
    records = task_records(one.suite, results, encoder, one.options)
    return replace(results, tasks=records, cost={**cost, **texts})


def _resident() -> dict[str, int]:
    """The most memory that this process ever held; what came before the suite counts too."""
    try:
        import resource
    except ImportError:  # Windows
        return {}
    import sys

    unit = 1 if sys.platform == "darwin" else 1024
    return {"peak memory (MB)": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6)}


def _joined_cost(found: Sequence[tuple[str, Results]]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for _, results in found:
        for name, value in results.cost.items():
            most = "memory" in name or name == TOGETHER
            total[name] = max(total.get(name, 0), value) if most else total.get(name, 0) + value
    if "seconds" in total:
        total["seconds"] = total.pop(TOGETHER, round(total["seconds"], 2))
    each = {name: {key: value for key, value in results.cost.items() if key != TOGETHER} for name, results in found}
    return {**total, "suites": each}


def _everything(options: Options) -> tuple[list[PlannedSuite], dict[str, str]]:
    found, left_out = [], {}
    for name, suite in registry().items():
        own = _taken(suite(), options)
        try:
            suite.check(own)
        except InputError as error:
            left_out[name] = str(error)
            continue
        found.append(PlannedSuite(name, suite(), own, named=False))
    if not found:
        raise _nothing_runs(left_out)
    _check_taken(found, options)
    return found, left_out


def _nothing_runs(left_out: Mapping[str, str]) -> InputError:
    """Each reason once, after the suites that give it."""
    suites: dict[str, list[str]] = {}
    for name, reason in left_out.items():
        suites.setdefault(reason.rstrip("."), []).append(name)
    reasons = "; ".join(f"{', '.join(names)}: {reason}" for reason, names in suites.items())
    return InputError(f"No suite can run. {reasons}.", setting="suite")


def _taken(suite: Suite, options: Options) -> Options:
    """The options that a suite takes next to others; the rest stay at their defaults."""
    default = Options()
    kept = {*suite.card.takes, "model"} - {*suite.card.alone}
    return replace(options, **{f.name: getattr(default, f.name) for f in fields(Options) if f.name not in kept})


def _check_taken(found: Sequence[PlannedSuite], options: Options) -> None:
    """Refuse an option that none of the suites takes."""
    taken = {name for one in found for name in one.suite.card.takes if name not in one.suite.card.alone}
    for name in options.asked():
        if name not in taken:
            raise InputError(f"None of the suites takes {name}: {', '.join(one.name for one in found)}; leave it out.")
