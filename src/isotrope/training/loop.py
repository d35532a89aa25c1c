"""The training loop, from top to bottom.

All chance is keyed by (seed, step, process): nothing depends on what ran before, so a resumed run repeats an
uninterrupted one.
"""

from __future__ import annotations

import importlib.util
import math
import time
import warnings
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from accelerate.state import AcceleratorState
from torch import Tensor
from torch.optim.lr_scheduler import LambdaLR

from isotrope.data.batches import Rows, epoch_size
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import default_device
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch, Method
from isotrope.progress import bar
from isotrope.training.checkpoints import RunFolder
from isotrope.training.collapse import CollapseAlarm
from isotrope.training.gathering import average_gradients
from isotrope.training.optimiser import build_optimiser, build_schedule, trainable
from isotrope.training.prefetch import interruptible, prefetched, stream
from isotrope.training.settings import LoopSettings
from isotrope.training.step import compute_gradient, keyed_seed
from isotrope.training.tactics.chain_thaw import thaw_of
from isotrope.training.tactics.child_tuning import child_of


@dataclass(frozen=True)
class Judgement:
    """Measures of an encoder, and the one (larger is better) that checkpoints are chosen by."""

    measures: dict[str, float]
    chosen_by: str

    @property
    def score(self) -> float:
        return self.measures[self.chosen_by]


Judge = Callable[[Encoder], Judgement]


@dataclass(frozen=True)
class Finished:
    history: list[dict[str, Any]]
    selected_step: int
    steps: int


class TrainingWarning(UserWarning):
    """Something about the run that a person should know; training goes on."""


def make_accelerator(settings: LoopSettings, folder: RunFolder | None = None) -> Accelerator:
    precision = settings.precision
    if precision == "auto":
        precision = "bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "float32"
    tracker = None if settings.report_to == "none" or folder is None else settings.report_to
    if tracker is not None and importlib.util.find_spec(tracker) is None:
        raise InputError(f"report_to {tracker} needs the package {tracker}; pip install {tracker}.")
    AcceleratorState._reset_state()
    return Accelerator(
        cpu=default_device().type
        == "cpu",  # without it, torchrun on a machine with no GPU starts processes that never meet
        mixed_precision={"float32": "no", "bfloat16": "bf16", "float16": "fp16"}[precision],
        log_with=tracker,
        project_dir=str(folder.folder / "trackers") if tracker and folder else None,
    )


def train_loop(
    method: Method,
    corpus: Corpus,
    rows: Rows,
    settings: LoopSettings,
    folder: RunFolder,
    accelerator: Accelerator,
    judge: Judge,
    resume: bool = False,
) -> Finished:
    """Train ``method`` on ``rows`` of ``corpus``; at the end its weights are those of the best evaluation."""
    per_process = settings.batch_size // accelerator.num_processes
    accumulation = settings.gradient_accumulation_steps
    if accumulation > 1:
        _warn(
            accelerator,
            f"Accumulating {accumulation} batches adds no negatives: an anchor still sees one batch of {settings.batch_size}.",
        )
    steps = count_steps(epoch_size(method.batches, corpus, rows), settings)
    method.to(accelerator.device).train()
    child = child_of(method, corpus, rows, settings, accelerator)
    optimiser = build_optimiser(method, settings)
    prepared = accelerator.prepare_optimizer(optimiser)
    thaw = thaw_of(method, settings, steps)
    schedule = build_schedule(optimiser, settings, steps) if thaw is None else LambdaLR(optimiser, thaw.rate)
    alarm = CollapseAlarm()
    step, best, best_step, stale = 0, -math.inf, 0, 0

    state = folder.load_last(method, optimiser) if resume else None
    accelerator.wait_for_everyone()
    if state is not None:
        step, best, best_step, stale = state["step"], state["best"], state["best_step"], state["stale"]
        schedule.load_state_dict(state["schedule"])
        if accelerator.scaler is not None:
            accelerator.scaler.load_state_dict(state["scaler"])
        alarm.first_rank, alarm.first_cosine = state["alarm"]
    if accelerator.is_main_process:
        folder.forget_after(step if state is not None else -1)
    if settings.report_to != "none":
        accelerator.init_trackers("isotrope", config=asdict(settings))

    pending: list[tuple[int, Tensor, dict[str, Tensor], Tensor]] = []  # on the device until the next log line
    clock = time.perf_counter()

    def flush(candidates: int) -> None:
        """The only place where the host waits for the device."""
        nonlocal clock
        if not pending:
            return
        losses = torch.stack([loss for _, loss, _, _ in pending]).cpu()
        for number, finite in enumerate(torch.isfinite(losses).tolist()):
            if not finite:
                _stop_at_nan(folder, pending[number][0], best_step)
        seconds, clock = time.perf_counter() - clock, time.perf_counter()
        terms = {name: float(value) for name, value in _means([named for _, _, named, _ in pending]).items()}
        last_step = pending[-1][0]
        line = {
            "step": last_step,
            "loss": float(losses.mean()),
            **terms,
            "candidates": candidates,
            "gradient_norm": float(torch.stack([norm for *_, norm in pending]).mean()),
            "learning_rate": float(schedule.get_last_lr()[0]),
            **({} if thaw is None else {"trained": thaw.stage(last_step - 1).name}),
            "records_per_second": round(len(pending) * settings.batch_size * accumulation / seconds, 1),
        }
        pending.clear()
        if accelerator.is_main_process:
            folder.log(line)
        accelerator.log({name: value for name, value in line.items() if name != "step"}, step=last_step)
        for sentence in alarm.after_log(last_step, terms.get("contrastive", 0.0), candidates):
            _warn(accelerator, sentence)

    def evaluate(contrastive: bool) -> bool:
        """Judge, keep the best; True when patience has run out. Processes other than the first wait."""
        nonlocal best, best_step, stale, clock
        if accelerator.is_main_process:
            judgement = judge(method.export() if step else method.encoder)  # at first the encoder as it was given
            better = best_step == 0 or math.isnan(best) or judgement.score > best
            if step > 0 and (better or method.keeps == "last"):
                best, best_step, stale = judgement.score, step, 0
                folder.save_best(step, method)
            elif step > 0:
                stale += 1
            line = {
                "step": step,
                "evaluation": judgement.measures,
                "chosen_by": judgement.chosen_by,
                "score": judgement.score,
            }
            folder.log(line)
            accelerator.log({f"evaluation/{name}": value for name, value in judgement.measures.items()}, step=step)
            for sentence in alarm.after_evaluation(step, judgement.measures) if contrastive else []:
                _warn(accelerator, sentence)
        verdict = torch.tensor([best, best_step, stale], dtype=torch.float64, device=accelerator.device)
        if accelerator.num_processes > 1:
            torch.distributed.broadcast(verdict, 0)
        best, best_step, stale = float(verdict[0]), int(verdict[1]), int(verdict[2])
        method.train()
        corpus.release()
        clock = time.perf_counter()
        return settings.patience is not None and stale >= settings.patience

    def save() -> None:
        if accelerator.is_main_process:
            kept = {"best": best, "best_step": best_step, "stale": stale, "schedule": schedule.state_dict()}
            if accelerator.scaler is not None:
                kept["scaler"] = accelerator.scaler.state_dict()
            folder.save(step, method, optimiser, {**kept, "alarm": [alarm.first_rank, alarm.first_cosine]})
        accelerator.wait_for_everyone()

    if state is None:
        evaluate(contrastive=True)
    stopped = settings.patience is not None and stale >= settings.patience
    local = slice(accelerator.process_index * per_process, (accelerator.process_index + 1) * per_process)

    def make(number: int, chosen: Rows) -> Batch:
        records = Records(corpus, chosen[local].tolist())
        rng = np.random.default_rng([settings.seed, number, accelerator.process_index])
        return Batch(method.views(records, rng), len(records), keyed_seed(settings.seed, number))

    source = prefetched(make, stream(method.batches, corpus, rows, settings), skip=step * accumulation)
    label = f"training {method.name}" if method.name else "training"
    candidates = 0
    show = None if accelerator.is_main_process else False
    with closing(source), bar(label, steps, start=step, show=show) as advance, interruptible() as interrupted:
        while step < steps and not stopped:
            if thaw is not None:
                thaw.begin(step)
            losses, terms = [], []
            for _ in range(accumulation):
                number, batch = next(source)
                key = (settings.seed, number, accelerator.process_index)
                outcome = compute_gradient(method, batch, accelerator, key, settings.chunk_size, 1 / accumulation)
                losses.append(outcome.loss)
                terms.append({**outcome.terms, **outcome.measures})
            average_gradients(trainable(method))
            norm = accelerator.clip_grad_norm_(trainable(method), settings.max_grad_norm)
            if child is not None:
                child.apply(step)
            prepared.step()
            schedule.step()
            optimiser.zero_grad(set_to_none=True)
            method.finish_step(outcome.representations)
            step += 1
            candidates = outcome.candidates
            pending.append((step, torch.stack(losses).mean(), _means(terms), torch.as_tensor(norm).detach()))
            if step % settings.logging_steps == 0 or step == steps or interrupted():
                loss_note = pending[-1][1]
                flush(candidates)
                advance(0, note=f"loss {float(loss_note):.4f} · {candidates} candidates")
            advance(1)
            if step % settings.eval_steps == 0 or step == steps:
                flush(candidates)
                stopped = evaluate(contrastive=candidates > 0)
                save()
            elif interrupted():
                save()
            if interrupted():
                raise KeyboardInterrupt(f"stopped at step {step}")
    if settings.report_to != "none":
        accelerator.end_training()
    accelerator.wait_for_everyone()
    if best_step:
        folder.load_best(best_step, method)
    method.eval()
    return Finished(folder.history(), best_step, step)


def count_steps(records: int, settings: LoopSettings) -> int:
    if settings.max_steps is not None:
        return settings.max_steps
    per_epoch = records // settings.batch_size / settings.gradient_accumulation_steps
    return max(math.ceil(settings.epochs * per_epoch), 1)


def _means(lines: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each number over the lines that have it: an empty queue has no candidates, and so no information."""
    names = dict.fromkeys(name for line in lines for name in line)
    return {name: torch.stack([line[name] for line in lines if name in line]).mean() for name in names}


def _stop_at_nan(folder: RunFolder, step: int, best_step: int) -> None:
    last = folder.last()
    kept = f"the last good checkpoint is {last}" if last else "no checkpoint had been written yet"
    if best_step:
        kept += f", the best weights are those of step {best_step}"
    raise InputError(
        f"The loss is not a number at step {step}: {kept}; lower the learning rate or check the data, then start again."
    )


def _warn(accelerator: Accelerator, sentence: str) -> None:
    if accelerator.is_main_process:
        warnings.warn(sentence, TrainingWarning, stacklevel=2)
