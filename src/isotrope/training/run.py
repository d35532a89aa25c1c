"""A training run from beginning to end: plan → open → build → run → export."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.allocator import returning_memory
from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus
from isotrope.data.image_sources import content_digest
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.read_out import RAW, ReadOut, is_finished, is_raw
from isotrope.progress import say
from isotrope.training.building import Built, build
from isotrope.training.held_out_task import chooses_itself, with_own_task
from isotrope.training.kept_classifier import kept_classifier
from isotrope.training.kept_model import keep
from isotrope.training.loop import Job, make_accelerator, train_loop
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.opening import Opened, length_remarks, open_plan
from isotrope.training.partners import check_alike, together
from isotrope.training.plan import Place, Plan
from isotrope.training.prerequisite import with_needed_run
from isotrope.training.run_circumstances import method_files, origin_of, source_of, surroundings
from isotrope.training.run_folder import RunFolder
from isotrope.training.state import Finished, Interrupted, Judge, Judgement, TrainingWarning
from isotrope.training.step import callers_random_state

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isotrope.evaluation.worth_table import Worth

JudgeMaker = Callable[[Corpus, Rows, Sequence[Place]], Judge]


@dataclass(frozen=True)
class RunSource:
    """One source of a run of several: its share of the batches (all add up to 1), its text, its final table."""

    name: str
    method: str
    share: float
    prompt: str
    corpus: Corpus
    held: Rows
    worth: Worth | None = None


@dataclass(frozen=True)
class Run:
    """A training run. ``encoder`` holds the weights of ``selected_step``; ``folder`` holds everything on disk.

    ``held``: the rows of ``corpus`` that training never saw. ``worth``: the final table, next to the start, builtin and
    TF-IDF, where one was made. Where the run has ``sources``, these three are those of the source with the largest
    share.
    """

    encoder: Encoder
    history: list[dict[str, Any]]
    selected_step: int
    selected_by: str
    folder: Path
    corpus: Corpus
    read_out: ReadOut
    held: Rows
    worth: Worth | None = None
    sources: tuple[RunSource, ...] = ()


def run_plan(plan: Plan, make_judge: JudgeMaker) -> Run:
    """Train as planned. ``make_judge`` makes, of a corpus and its held-out rows, what checkpoints are chosen by."""
    with returning_memory(), callers_random_state():
        plan = with_needed_run(plan, partial(run_plan, make_judge=make_judge))
        accelerator = make_accelerator(plan.loop, plan.folder)
        with plan.folder.alone(plan.resume, accelerator.is_main_process), together(accelerator):
            return _run(plan, make_judge, accelerator)


def _run(plan: Plan, make_judge: JudgeMaker, accelerator: Accelerator) -> Run:
    opened = open_plan(plan, accelerator)
    origin = origin_of(plan, opened.encoder)  # before a method changes its encoder
    built = build(plan, opened, accelerator)
    judge = judge_of(plan, opened, built, make_judge)
    facts = _facts(plan, opened, built, origin, accelerator)
    remarks = built.combined.method.prepared.remarks
    begin(plan, facts, opened.read_out, remarks, built.settings, accelerator)
    say_lengths(plan, opened, built.settings, accelerator)
    built.combined.to(accelerator.device).train()
    for tactic in built.tactics:
        tactic.prepare(built.feed, accelerator)
    job = Job(
        built.combined,
        built.feed,
        built.steps,
        built.settings,
        plan.folder,
        accelerator,
        judge,
        built.tactics,
        label=f"training {plan.name}",
        start_counts=bool(plan.eval_data) or is_finished(opened.encoder.facts),
    )
    with kept_when_stopped(plan.folder, lambda done: _export(plan, opened, built, facts, done, accelerator)):
        return _export(plan, opened, built, facts, train_loop(job, plan.resume), accelerator)
    raise AssertionError("unreachable")


@contextmanager
def kept_when_stopped(folder: RunFolder, export: Callable[[Finished], Run]) -> Iterator[None]:
    """A run that is stopped by Ctrl-C or a scheduler leaves the model it has, and then stops."""
    try:
        yield
    except Interrupted as stop:
        export(stop.finished)
        chosen = f"step {stop.finished.selected_step}" if stop.finished.selected_step else "the start"
        raise KeyboardInterrupt(f"{stop}; the model so far ({chosen}) is in {folder.model}") from stop


def judge_of(plan: Plan, opened: Opened, built: Built, make_judge: JudgeMaker) -> Judge:
    settings, corpus = built.settings, opened.corpus
    judge = nobody if chooses_itself(built.combined) else make_judge(corpus, built.held, plan.eval_data)
    return with_own_task(
        judge, built.combined, corpus, built.held_usable, settings.batch_size, settings.seed, built.tests
    )


def nobody(encoder: Encoder) -> Judgement:
    """The judge of a method whose own task chooses."""
    return Judgement({}, "")


def _facts_kept(plan: Plan, raw: bool, facts: dict[str, Any], finished: Finished) -> dict[str, Any]:
    """What isotrope.json says of the model. A raw language model that was trained further as one, or that is kept as it
    was, is still raw."""
    kept = {name: facts[name] for name in ("method", "settings", "data")}
    still_raw = raw and (plan.method.card.read_out is None or finished.start_kept)
    return {**kept, "selected_step": finished.selected_step, **({RAW: True} if still_raw else {})}


def _facts(
    plan: Plan, opened: Opened, built: Built, origin: dict[str, str], accelerator: Accelerator
) -> dict[str, Any]:
    """What run.json says: enough to repeat the run, and to refuse to resume another one."""
    corpus = opened.corpus
    return {
        "method": plan.name,
        **method_files(plan),
        "data": {"fingerprint": corpus.fingerprint, "record_type": corpus.record_type.name, **asdict(corpus.counts)},
        "model": origin,
        "settings": plan.resolved(built.settings),
        "read_out": asdict(opened.read_out),
        "source": source_of(plan),
        "eval_data": [str(file) for file in plan.eval_data],
        "eval_content": [content_digest(file) for file in plan.eval_data],
        **({"made": dict(plan.made)} if plan.made else {}),
        "seed": built.settings.seed,
        "processes": accelerator.num_processes,
        **surroundings(str(accelerator.device)),
    }


def begin(
    plan: Plan,
    facts: dict[str, Any],
    read_out: ReadOut,
    remarks: Sequence[str],
    settings: LoopSettings,
    accelerator: Accelerator,
) -> None:
    """The first thing that is written, once nothing more can be refused."""
    check_alike(facts, accelerator)
    if accelerator.is_main_process:
        plan.folder.begin(facts, plan.resume)
        say(str(read_out))
    accelerator.wait_for_everyone()
    accumulation = settings.gradient_accumulation_steps
    accumulating = (
        f"Accumulating {accumulation} batches adds no negatives: an anchor still sees one batch of "
        f"{settings.batch_size}."
    )
    said = [*remarks, *([accumulating] if accumulation > 1 else [])]
    for sentence in said if accelerator.is_main_process else []:
        warnings.warn(sentence, TrainingWarning, stacklevel=4)


def say_lengths(plan: Plan, opened: Opened, settings: LoopSettings, accelerator: Accelerator) -> None:
    """How many records are cut; spans of a document are drawn and not cut."""
    if accelerator.is_main_process and plan.method.batches != "by-document" and not plan.from_scratch:
        for sentence in length_remarks(opened.encoder, opened.corpus, settings.max_length):
            say(sentence)


def _export(
    plan: Plan, opened: Opened, built: Built, facts: dict[str, Any], finished: Finished, accelerator: Accelerator
) -> Run:
    kept = _facts_kept(plan, is_raw(opened.encoder.facts), facts, finished)
    classify = partial(kept_classifier, built)
    encoder, selected_by = keep(built.combined, plan.folder, kept, finished, accelerator, classify)
    return Run(
        encoder,
        finished.history,
        finished.selected_step,
        selected_by,
        plan.folder.folder,
        opened.corpus,
        opened.read_out,
        built.held if built.hidden else built.held[:0],
    )
