"""One update: gradients of some batches, clipped, changed by tactics, taken by the optimiser, followed by towers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.learner import Learner
from isotrope.training.gathering import average_gradients
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import build_optimiser, build_schedule, rise_and_fall, trainable
from isotrope.training.step import compute_gradient
from isotrope.training.tactics.tactic import Tactic

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class BatchLog:
    """What one batch gave; its numbers are on the device until somebody logs them."""

    source: int
    loss: Tensor
    numbers: dict[str, Tensor]
    candidates: int


@dataclass(frozen=True)
class Update:
    """What an update gave; its batches are more than one where gradients are accumulated."""

    loss: Tensor
    batches: Sequence[BatchLog]
    norm: Tensor
    about: dict[str, Any]
    remarks: Sequence[str] = ()  # of the first batch of a source


class Updater:
    """Holds the optimiser and its schedule."""

    def __init__(
        self,
        combined: Learner,
        settings: LoopSettings,
        steps: int,
        tactics: Sequence[Tactic[Any]],
        accelerator: Accelerator,
    ) -> None:
        self.combined, self.settings, self.steps = combined, settings, steps
        self.tactics, self.accelerator = tactics, accelerator
        self.weights = list(combined.parameters())
        self.optimiser = build_optimiser(combined, settings)
        self.prepared = accelerator.prepare_optimizer(self.optimiser)
        self.schedule = build_schedule(self.optimiser, self.share_of_rate)
        self.remarked: set[int] | None = None  # the sources whose first batch was seen; a resumed run says nothing

    def update(self, step: int, source: Iterator[tuple[int, Batch]]) -> Update:
        combined, settings, accelerator = self.combined, self.settings, self.accelerator
        accumulation = settings.gradient_accumulation_steps
        for tactic in self.tactics:
            tactic.before_update(step)
        taken: list[BatchLog] = []
        last: dict[int, tuple[Combined, dict[str, Tensor]]] = {}  # by source: towers see the last of its batches
        for _ in range(accumulation):
            number, batch = next(source)
            key = (settings.seed, number, accelerator.process_index)
            part = combined.of(batch)
            outcome = compute_gradient(part, batch, accelerator, key, settings.chunk_size, 1 / accumulation)
            numbers = {**outcome.terms, **outcome.measures}
            taken.append(BatchLog(batch.source, outcome.loss, numbers, outcome.candidates))
            last[batch.source] = part, outcome.representations
        if accelerator.num_processes > 1:
            # Towers of other sources have no gradient in any process, and the optimiser must pass them over.
            average_gradients(dict.fromkeys(p for part, _ in last.values() for p in trainable(part)))
        trained = [weight for weight in self.weights if weight.requires_grad]
        norm = accelerator.clip_grad_norm_(trained, settings.max_grad_norm or math.inf)
        for tactic in self.tactics:
            tactic.change_gradients(step)
        self.prepared.step()
        self.schedule.step()
        self.optimiser.zero_grad(set_to_none=True)
        for part, representations in last.values():
            part.after_update(representations)
        for tactic in self.tactics:
            tactic.after_update(step)
        about = {"learning_rate": float(self.schedule.get_last_lr()[0])}
        for tactic in self.tactics:
            about |= tactic.logged(step)
        loss = torch.stack([one.loss for one in taken]).mean()
        return Update(loss, taken, torch.as_tensor(norm).detach(), about, self._remarks(step, last))

    def _remarks(self, step: int, last: Mapping[int, tuple[Combined, dict[str, Tensor]]]) -> list[str]:
        """What methods say of their first batch."""
        if step == 0:
            self.remarked = set()
        fresh = [] if self.remarked is None else [source for source in last if source not in self.remarked]
        self.remarked = None if self.remarked is None else {*self.remarked, *fresh}
        said = ((source, *last[source]) for source in fresh)
        names = self.combined.sources
        return [
            f"Source '{names[source]}': {sentence}" if len(names) > 1 else sentence
            for source, part, representations in said
            for sentence in part.method.remarks(representations)
        ]

    def after_evaluation(self, step: int, score: float) -> None:
        """Tell the tactics; the next update has the rate that they now say."""
        for tactic in self.tactics:
            tactic.after_evaluation(step, score)
        self.set_rates(step)

    @contextmanager
    def judged(self) -> Iterator[None]:
        """Inside it the weights are those that an evaluation judges."""
        with ExitStack() as stack:
            for tactic in self.tactics:
                stack.enter_context(tactic.judged())
            yield

    def set_steps(self, steps: int, step: int) -> None:
        """The run turns out to have so many steps; the update after ``step`` has the rate that fits."""
        if steps != self.steps:
            self.steps = steps
            self.set_rates(step)

    def set_rates(self, step: int) -> None:
        """The rate of each group for the update after ``step``."""
        for group, highest in zip(self.optimiser.param_groups, self.schedule.base_lrs, strict=True):
            group["lr"] = highest * self.share_of_rate(step)

    def share_of_rate(self, step: int) -> float:
        """A tactic may have its own schedule; otherwise the rate rises, then falls to zero."""
        own = (tactic.rate(step) for tactic in self.tactics)
        plain = rise_and_fall(step, self.steps, self.settings.warmup_ratio, self.settings.schedule)
        return next((share for share in own if share is not None), plain)


def means(lines: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each number over the lines that have it: an empty queue has no candidates, and so no information."""
    names = dict.fromkeys(name for line in lines for name in line)
    return {name: torch.stack([line[name] for line in lines if name in line]).mean() for name in names}
