"""A run of several sources from beginning to end: the line of ``run.py`` with a plan, a corpus and a method a source.

plan → open → build → run → export
"""

from __future__ import annotations

from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from isotrope.allocator import returning_memory
from isotrope.encoders.encoder_uses import PROMPTS
from isotrope.encoders.read_out import RAW, is_finished, is_raw
from isotrope.files import digest, file_digest
from isotrope.methods.frame.classifying import Classifying
from isotrope.training.kept_classifier import kept_classifier
from isotrope.training.kept_model import keep
from isotrope.training.loop import Job, make_accelerator, train_loop
from isotrope.training.partners import together
from isotrope.training.prerequisite import with_needed_run
from isotrope.training.run import (
    JudgeMaker,
    Run,
    RunSource,
    begin,
    kept_when_stopped,
    run_plan,
    say_lengths,
)
from isotrope.training.run_circumstances import method_files, origin_of, source_of, surroundings
from isotrope.training.source_building import BuiltSources, build_sources, open_sources
from isotrope.training.source_judge import judge_sources
from isotrope.training.source_plan import SourcesPlan
from isotrope.training.state import Finished
from isotrope.training.step import callers_random_state

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isotrope.training.loop_settings import LoopSettings


def run_sources(plan: SourcesPlan, make_judge: JudgeMaker) -> Run:
    """Train as planned; with one source, this is the run of that method, bit for bit."""
    with returning_memory(), callers_random_state():
        plans = [with_needed_run(one, partial(run_plan, make_judge=make_judge)) for one in plan.plans]
        plan = replace(plan, plans=tuple(plans))
        accelerator = make_accelerator(plan.first.loop, plan.first.folder)
        with plan.first.folder.alone(plan.first.resume, accelerator.is_main_process), together(accelerator):
            return _run(plan, make_judge, accelerator)


def _run(plan: SourcesPlan, make_judge: JudgeMaker, accelerator: Accelerator) -> Run:
    encoder, opened = open_sources(plan, accelerator)
    origin, raw = origin_of(plan.first, encoder), is_raw(encoder.facts)  # before a method changes its encoder
    found = build_sources(plan, encoder, opened, accelerator)
    judge = judge_sources(plan, found, make_judge)
    settings = found.built[found.largest].settings  # the size of a batch is each source's own
    facts = _facts(plan, found, origin, settings, accelerator)
    begin(plan.first, facts, opened[0].read_out, _remarks(found), settings, accelerator)
    for one, source, built in zip(plan.plans, opened, found.built, strict=True):
        say_lengths(one, source, built.settings, accelerator)
    found.mixture.to(accelerator.device).train()
    tactics = found.built[0].tactics  # several sources have none
    for tactic in tactics:
        tactic.prepare(found.built[0].feed, accelerator)
    job = Job(
        found.mixture,
        found.feed,
        found.steps,
        settings,
        plan.first.folder,
        accelerator,
        judge,
        tactics,
        speeds={"records_per_second": found.mean_batch * settings.gradient_accumulation_steps},
        label=f"training {plan.name}",
        start_counts=bool(plan.first.eval_data) or is_finished(encoder.facts),
    )
    with kept_when_stopped(plan.first.folder, lambda done: _export(plan, found, facts, raw, done, accelerator)):
        return _export(plan, found, facts, raw, train_loop(job, plan.first.resume), accelerator)
    raise AssertionError("unreachable")


def _remarks(found: BuiltSources) -> list[str]:
    several = len(found.names) > 1
    unjudged = [
        f"Source '{found.names[number]}': nothing of it is held out (held_out is 0, its records are few, or their "
        "texts recur in others), so it has no held-out measures and no say in the score."
        for number in sorted(found.unjudged)
    ]
    return unjudged + [
        f"Source '{name}': {remark}" if several else remark
        for name, built in zip(found.names, found.built, strict=True)
        for remark in built.combined.method.prepared.remarks
    ]


def _facts(
    plan: SourcesPlan, found: BuiltSources, origin: dict[str, str], settings: LoopSettings, accelerator: Accelerator
) -> dict[str, Any]:
    """What run.json says. ``sources`` are the files, as in pre-training; ``mixture`` has all that differs."""
    each = list(zip(plan.sources, plan.plans, found.opened, found.built, found.shares, strict=True))
    common, made = plan.common(), {source.name: dict(one.made) for source, one, *_ in each if one.made}
    mixture = {
        source.name: {
            "method": one.name,
            "share": share,
            "prompt": opened.encoder.prompt,
            "data": opened.corpus.fingerprint,
            "record_type": opened.corpus.record_type.name,
            "records": len(opened.corpus),
            "settings": {name: value for name, value in one.resolved(built.settings).items() if name not in common},
        }
        for source, one, opened, built, share in each
    }
    fingerprint = digest(*(opened.corpus.fingerprint for opened in found.opened))
    return {
        "method": plan.name,
        **method_files(*plan.plans),
        "data": {"fingerprint": fingerprint, "records": sum(len(opened.corpus) for opened in found.opened)},
        "model": origin,
        "settings": common,
        "mixture": mixture,
        "read_out": asdict(found.opened[0].read_out),
        "sources": [source_of(one) for one in plan.plans],
        "eval_data": [str(file) for file in plan.first.eval_data],
        "eval_content": [file_digest(file) for file in plan.first.eval_data],
        **({"made": made} if made else {}),
        "seed": settings.seed,
        "processes": accelerator.num_processes,
        **surroundings(str(accelerator.device)),
    }


def _export(
    plan: SourcesPlan,
    found: BuiltSources,
    facts: dict[str, Any],
    raw: bool,
    finished: Finished,
    accelerator: Accelerator,
) -> Run:
    as_published = all(one.method.card.read_out is None for one in plan.plans)
    still_raw = raw and (as_published or finished.start_kept)
    kept = {name: facts[name] for name in ("method", "settings", "mixture", "data")}
    prompts = {name: opened.encoder.prompt for name, opened in zip(found.names, found.opened, strict=True)}
    own = {name: prompt for name, prompt in prompts.items() if prompt != found.mixture.encoder.prompt}
    kept |= {PROMPTS: own} if own else {}
    kept |= {"selected_step": finished.selected_step, **({RAW: True} if still_raw else {})}
    classifying = [built for built in found.built if isinstance(built.combined.method, Classifying)]
    classify = partial(kept_classifier, classifying[0]) if len(classifying) == 1 else None
    encoder, selected_by = keep(found.mixture, plan.first.folder, kept, finished, accelerator, classify)
    sources = tuple(_run_sources(plan, found))
    largest = sources[found.largest]
    return Run(
        encoder,
        finished.history,
        finished.selected_step,
        selected_by,
        plan.first.folder.folder,
        largest.corpus,
        found.opened[0].read_out,
        largest.held,
        sources=sources,
    )


def _run_sources(plan: SourcesPlan, found: BuiltSources) -> list[RunSource]:
    return [
        RunSource(
            source.name,
            one.name,
            share,
            opened.encoder.prompt,
            opened.corpus,
            built.held if built.hidden else built.held[:0],
        )
        for source, one, share, opened, built in zip(
            plan.sources, plan.plans, found.shares, found.opened, found.built, strict=True
        )
    ]
