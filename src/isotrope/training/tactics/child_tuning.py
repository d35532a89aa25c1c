"""Child-Tuning (Xu et al. 2021): the forward pass has the whole network, the update only a part of its weights.

    F (task-free)     g̃ = g ⊙ M_t / p,   M_t ~ Bernoulli(p), sampled at each step: the mean of g̃ is g
    D (task-driven)   g̃ = g ⊙ M,         M: the share p of the weights with the largest Fisher information, chosen once

    Fisher:  F_i = mean over records of (∂ℓ/∂w_i)²

The gradient is changed after clipping and before the optimiser sees it, alike in every process. p = 1 is plain
training.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated

import numpy as np
import torch
import torch.distributed as distributed
from torch import Tensor, nn

from isotrope.data.batches import Rows
from isotrope.data.random_streams import keyed_seed
from isotrope.encoders.shared_batch_norm import apart
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import Count, OneOf, ShareAboveZero
from isotrope.progress import bar
from isotrope.training.feeds import CorpusFeed, make_batch
from isotrope.training.gathering import processes
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.step import represent_seeded
from isotrope.training.tactics.tactic import BLOCK, Tactic, TacticSettings

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class ChildTuningSettings(TacticSettings):
    child_tuning: Annotated[
        str,
        OneOf("none", "F", "D"),
        "F: a random part of the gradient each step; D: the weights that matter to the task, chosen once",
    ] = "none"
    child_p: Annotated[ShareAboveZero, "Share of the weights that is updated"] = 0.3
    child_fisher: Annotated[
        str, OneOf("examples", "batches"), "D: gradients of single records, or of batches as in the released code"
    ] = "examples"
    child_samples: Annotated[Count, "D: records that the Fisher information is taken from"] = 2048

    @property
    def active(self) -> bool:
        return self.child_tuning != "none"


class ChildTuning(Tactic[ChildTuningSettings]):
    """Changes gradients in place. Embeddings and heads are always trained under D, as in the released code."""

    card = Card(
        name="child-tuning",
        title="Child-Tuning F and D, for any method",
        paper="Xu, Luo, Zhang, Tan, Chang, Huang, Huang. Raise a Child in Large Language Model. EMNLP 2021",
        year=2021,
        needs="what the method needs",
        family="supervised",
        kind="optimiser",
    )
    Settings = ChildTuningSettings

    def __init__(self, settings: ChildTuningSettings, combined: Combined, loop: LoopSettings, steps: int) -> None:
        super().__init__(settings, combined, loop, steps)
        self.masks: dict[str, Tensor] | None = None  # by name, D's
        if settings.child_tuning == "D":
            blocks(combined)  # refuses a model without layers

    def prepare(self, feed: CorpusFeed, accelerator: Accelerator) -> None:
        if self.settings.child_tuning == "D":
            found = fisher(self.combined, self._batches(feed), accelerator)
            self.masks = largest(found, self.settings.child_p)

    def change_gradients(self, step: int) -> None:
        if self.masks is not None:
            for name, parameter in self.combined.named_parameters():
                if name in self.masks and parameter.grad is not None:
                    parameter.grad.mul_(self.masks[name])
        elif self.settings.child_p < 1:
            self._thin_out(step)

    def _thin_out(self, step: int) -> None:
        share = self.settings.child_p
        gradients = [parameter.grad for parameter in self.combined.parameters() if parameter.grad is not None]
        generator = torch.Generator(gradients[0].device).manual_seed(keyed_seed("child masks", self.loop.seed, step))
        for gradient in gradients:
            kept = torch.rand(gradient.shape, generator=generator, device=gradient.device) < share
            gradient.mul_(kept).div_(share)

    def _batches(self, feed: CorpusFeed) -> Iterator[Batch]:
        """Records one by one; where a record alone has no gradient, because records are compared with each other,
        batches of them."""
        samples, seed = self.settings.child_samples, self.loop.seed
        together = islice(feed.epoch(0), max(samples // self.loop.batch_size, 1))
        method = self.combined.method
        if self.settings.child_fisher == "batches" or method.batches != "unique" or method.batch_statistics:
            return self._made(feed, together)
        order = np.random.default_rng(keyed_seed("fisher", seed)).permutation(len(feed.rows))[:samples]
        alone = [feed.rows[[row]] for row in order]
        first, members = self._batch(feed, 0, alone[0]), list(blocks(self.combined).values())
        # Every process looks at the same record, so that all decide alike.
        found = _gradients(self.combined, first, members, feed.accelerator)
        return self._made(feed, alone if any(bool(gradient.any()) for gradient in found) else together)

    def _made(self, feed: CorpusFeed, chosen: Iterable[Rows]) -> Iterator[Batch]:
        """Each process has its own, in turn."""
        for number, rows in enumerate(chosen):
            if number % feed.accelerator.num_processes == feed.accelerator.process_index:
                yield self._batch(feed, number, rows)

    def _batch(self, feed: CorpusFeed, number: int, rows: Rows) -> Batch:
        key = (self.loop.seed, "fisher", number)
        return make_batch(self.combined, feed.corpus, rows, key, key)


def fisher(combined: Combined, drawn: Iterable[Batch], accelerator: Accelerator) -> dict[str, Tensor]:
    """The mean square of the loss's gradient, over the batches of all processes, for every weight of the backbone's
    blocks.
    """
    members = blocks(combined)
    squares = {name: torch.zeros_like(parameter) for name, parameter in members.items()}
    count = torch.zeros((), device=accelerator.device)  # processes may have one more or less
    with apart(), bar("Fisher information", None) as advance:
        for batch in drawn:
            found = _gradients(combined, batch, list(members.values()), accelerator)
            for square, gradient in zip(squares.values(), found, strict=True):
                square.addcmul_(gradient, gradient)
            count += 1
            advance(1)
    if processes() > 1:
        for total in (count, *squares.values()):
            distributed.all_reduce(total)
    return {name: square / count.clamp(min=1) for name, square in squares.items()}


def largest(values: dict[str, Tensor], share: float) -> dict[str, Tensor]:
    """Masks of the ``share`` largest of all values together; of equal ones the first are taken."""
    flat = torch.cat([value.flatten().cpu() for value in values.values()])
    if not torch.isfinite(flat).all() or not flat.any():
        raise InputError(
            "The Fisher information is zero or not finite everywhere: the method has no gradient at its start."
        )
    kept = torch.zeros(len(flat), dtype=torch.bool)
    kept[torch.sort(flat, descending=True, stable=True).indices[: max(round(share * len(flat)), 1)]] = True
    parts = kept.split([value.numel() for value in values.values()])
    return {
        name: part.view(value.shape).to(value.device) for (name, value), part in zip(values.items(), parts, strict=True)
    }


def blocks(combined: Combined) -> dict[str, nn.Parameter]:
    """The weights of the backbone's layers that are trained, by name."""
    inside = {id(parameter) for name, parameter in combined.encoder.named_parameters() if BLOCK.search(name)}
    named = combined.named_parameters()
    found = {name: parameter for name, parameter in named if id(parameter) in inside and parameter.requires_grad}
    if not found:
        raise InputError(
            "Child-Tuning D chooses among the weights of the backbone's layers, "
            "and this model has none that are trained."
        )
    return found


def _gradients(
    combined: Combined, batch: Batch, parameters: list[nn.Parameter], accelerator: Accelerator
) -> list[Tensor]:
    found = represent_seeded(combined, batch, accelerator, keyed_seed("forward", batch.seed))
    loss = combined.total(combined.loss(found, batch.generator()))
    if not loss.requires_grad:
        return [torch.zeros_like(parameter) for parameter in parameters]
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    return [torch.zeros_like(p) if grad is None else grad for p, grad in zip(parameters, gradients, strict=True)]
