"""The training loop, from top to bottom; training and pre-training run on it.

    batches → gradients → clip → tactics → update → towers follow → log → evaluate → save

All random numbers are keyed by (seed, step, process): a resumed run repeats an uninterrupted one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState

from isotrope.encoders.compiled_layers import can_compile
from isotrope.encoders.loading import default_device
from isotrope.encoders.speed import Speed, at_speed, forgetting_graphs
from isotrope.methods.frame.learner import Learner
from isotrope.progress import bar, say
from isotrope.training.checkpoints import Checkpoints
from isotrope.training.feeds import Feed
from isotrope.training.float32_products import fast_products
from isotrope.training.half_precision import mixed_precision
from isotrope.training.history_lines import KEPT
from isotrope.training.interruption import interruptible, stops
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.metrics_log import MetricsLog
from isotrope.training.run_folder import RunFolder
from isotrope.training.run_length import RunLength
from isotrope.training.selection import Selection, has_start
from isotrope.training.state import Finished, Interrupted, Judge, TrainingState
from isotrope.training.tactics.tactic import Tactic
from isotrope.training.updates import Updater

WORTH_COMPILING = 300  # steps


@dataclass(frozen=True)
class Job:
    """What is trained, on what, for how long, and who judges it.

    ``deadline`` is a time of ``time.perf_counter`` after which the run stops with a checkpoint to resume from.
    ``start_counts``: whether the judge's word on the start can be trusted. Of a raw language model a score without
    labels says how alike the halves of a text are, not what its vectors are worth: a start 15 points of MRR below the
    best has won by it (docs/notes/packages.md).
    """

    combined: Learner
    feed: Feed
    steps: int
    settings: LoopSettings
    folder: RunFolder
    accelerator: Accelerator
    judge: Judge
    tactics: Sequence[Tactic[Any]] = ()
    speeds: Mapping[str, float] | None = None
    deadline: float | None = None
    label: str = "training"
    start_counts: bool = True


def train_loop(job: Job, resume: bool = False) -> Finished:
    """Train; at the end the weights are those of the best evaluation."""
    with tracked(job.accelerator, job.settings):
        return _train(job, resume)


def _train(job: Job, resume: bool) -> Finished:
    settings, folder, accelerator, tactics = job.settings, job.folder, job.accelerator, job.tactics
    job.combined.to(accelerator.device).train()
    updater = Updater(job.combined, settings, job.steps, tactics, accelerator)
    records = settings.batch_size * settings.gradient_accumulation_steps
    log = MetricsLog(folder, accelerator, job.speeds or {"records_per_second": records}, job.combined.sources)
    keeps_start = settings.keep_start and job.start_counts
    selection = Selection(job.combined, job.judge, folder, log, settings.patience, keeps_start)
    checkpoints = Checkpoints(folder, job.combined, updater, accelerator, [log.alarm, *log.alarms])
    length = RunLength(job.steps, settings.max_seconds, accelerator, settings.time_limit)
    state = checkpoints.begin(resume)
    if state is None:
        state = TrainingState()
        selection.evaluate(state, accelerator, contrastive=True)
    source = job.feed.batches(skip=state.step * settings.gradient_accumulation_steps)
    show = None if accelerator.is_main_process else False
    late, shown = False, length.done(state)
    length.begin(state)
    updater.set_steps(length.steps, state.step)
    fast = at_speed(speed_of(settings, length.steps - state.step, accelerator))
    products = fast_products(job.combined, accelerator.device)
    shows = bar(f"{job.label}{length.unit()}", length.total(), shown, show)
    with closing(source), forgetting_graphs(), fast, products, shows as advance, interruptible() as interrupted:
        while state.step < length.steps and not selection.exhausted(state) and not late:
            update = updater.update(state.step, source)
            state.step += 1
            log.add(update)
            updater.set_steps(length.after_step(state), state.step)
            late = job.deadline is not None and is_past(job.deadline, accelerator)
            last = state.step >= length.steps or late
            evaluates = settings.evaluates_at(state.step) or last
            due = state.step % settings.logging_steps == 0 or evaluates
            stop = stops(interrupted(), due, accelerator)
            if due or stop:
                advance(0, note=log.write(state))
            length.count(state)
            advance(length.done(state) - shown, total=length.total())
            shown = length.done(state)
            if evaluates:
                with updater.judged():
                    score = selection.evaluate(state, accelerator, contrastive=log.contrastive)
                updater.after_evaluation(state.step, score)
                job.feed.release()
            if evaluates or stop:
                checkpoints.save(state)
                length.go_on()
            if stop:
                raise Interrupted(f"stopped at step {state.step}", _stopped(state, checkpoints, folder))
    if (short := length.cut_short(state)) is not None and accelerator.is_main_process:
        say(short)
    checkpoints.put_best(state)
    if not has_start(state):
        _change_kept(job, selection, state.best_step)
    complete = not late or state.step >= length.steps
    return Finished(folder.history(), state.best_step, state.step, complete, start_kept=has_start(state))


def _change_kept(job: Job, selection: Selection, step: int) -> None:
    """Tactics have the last word on the weights that are kept; the log and run.json hold what they say of it."""
    for tactic in job.tactics:
        found = tactic.change_kept(partial(selection.judge_kept, job.accelerator))
        if found and job.accelerator.is_main_process:
            job.folder.log({"step": step, **found})
            job.folder.add_facts({name: value for name, value in found.items() if name != KEPT})
    job.accelerator.wait_for_everyone()  # each reads the log


def _stopped(state: TrainingState, checkpoints: Checkpoints, folder: RunFolder) -> Finished:
    """What a stopped run has: the best until then, or its last weights where nothing was judged after the start."""
    history = folder.history()
    if state.best_step or any(line["step"] for line in history if "evaluation" in line):
        checkpoints.put_best(state)
        return Finished(history, state.best_step, state.step, complete=False, start_kept=has_start(state))
    return Finished(history, state.step, state.step, complete=False, judged=False)


def is_past(deadline: float, accelerator: Accelerator) -> bool:
    """Whether the time is up, by the clock of the first process."""
    late = time.perf_counter() > deadline
    if accelerator.num_processes == 1:
        return late
    verdict = torch.tensor(float(late), device=accelerator.device)
    torch.distributed.broadcast(verdict, 0)
    return bool(verdict)


def speed_of(settings: LoopSettings, steps: int, accelerator: Accelerator) -> Speed:
    """Layers are compiled where that pays: it costs about as much as a hundred steps. Graphs need one batch a step."""
    if settings.compiled == "never" or accelerator.device.type != "cuda":
        return Speed()
    if settings.compiled == "auto" and not (steps >= WORTH_COMPILING and can_compile()):
        return Speed()
    return Speed(True, settings.gradient_accumulation_steps == 1 and settings.chunk_size is None)


def make_accelerator(settings: LoopSettings, folder: RunFolder | None = None) -> Accelerator:
    tracker = None if settings.report_to == "none" or folder is None else settings.report_to
    AcceleratorState._reset_state()
    if default_device().type == "cuda" and default_device().index is not None and "RANK" not in os.environ:
        torch.cuda.set_device(default_device())
    return Accelerator(
        cpu=default_device().type == "cpu",  # else torchrun on a machine with no GPU starts processes that never meet
        mixed_precision=mixed_precision(settings.precision),
        log_with=tracker,
        project_dir=str(folder.folder / "trackers") if tracker and folder else None,
    )


@contextmanager
def tracked(accelerator: Accelerator, settings: LoopSettings) -> Iterator[None]:
    """Inside the block the log goes to the tracker as well; it is closed whatever ends the block."""
    if settings.report_to == "none":
        yield
        return
    accelerator.init_trackers("isotrope", config=asdict(settings))
    try:
        yield
    finally:
        for tracker in accelerator.trackers:  # accelerate's own end_training would also part the processes
            tracker.finish()
