"""Child-Tuning (Xu et al. 2021): the forward pass has the whole network, the update only a part of its weights, the
child.

    F (task-free)     g̃ = g ⊙ M_t / p,   M_t ~ Bernoulli(p), drawn anew each step: the mean of g̃ is g
    D (task-driven)   g̃ = g ⊙ M,         M: the share p of the weights with the largest Fisher information, chosen once

    Fisher:  F_i = mean over records of (∂ℓ/∂w_i)²

The gradient is changed after clipping and before the optimiser sees it, alike in every process. p = 1 is plain
training.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed as distributed
from torch import Tensor, nn

from isotrope.data.batches import Rows, batches
from isotrope.data.corpus import Corpus, Records
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch, Card, Method
from isotrope.progress import bar
from isotrope.training.gathering import processes
from isotrope.training.settings import LoopSettings
from isotrope.training.step import keyed_seed

if TYPE_CHECKING:
    from accelerate import Accelerator

CARD = Card(
    name="child-tuning",
    title="Child-Tuning F and D, beside any method",
    paper="Xu, Luo, Zhang, Tan, Chang, Huang, Huang. Raise a Child in Large Language Model. EMNLP 2021",
    year=2021,
    needs="what the method beside it needs",
    kind="optimiser",
)
BLOCK = re.compile(
    r"\.(layers?|blocks?|h)\.\d+\."
)  # of the backbone; embeddings and heads are always trained, as in the released code
MASKS, FISHER = 1 << 20, 1 << 21  # apart from the keys of the steps


class ChildTuning:
    """Changes the gradients of ``method`` in place. ``masks`` (by name): D's; None: F."""

    def __init__(self, method: Method, share: float, seed: int, masks: dict[str, Tensor] | None = None) -> None:
        self.method, self.share, self.seed, self.masks = method, share, seed, masks

    def apply(self, step: int) -> None:
        if self.masks is not None:
            for name, parameter in self.method.named_parameters():
                if name in self.masks and parameter.grad is not None:
                    parameter.grad.mul_(self.masks[name])
            return
        if self.share == 1:
            return
        gradients = [parameter.grad for parameter in self.method.parameters() if parameter.grad is not None]
        generator = torch.Generator(gradients[0].device).manual_seed(keyed_seed(self.seed, step, MASKS))
        for gradient in gradients:
            kept = torch.rand(gradient.shape, generator=generator, device=gradient.device) < self.share
            gradient.mul_(kept).div_(self.share)


def child_of(
    method: Method, corpus: Corpus, rows: Rows, settings: LoopSettings, accelerator: Accelerator
) -> ChildTuning | None:
    """What the settings ask for. Call it before weights are loaded to resume from: D's child is that of the start."""
    if settings.child_tuning == "none":
        return None
    if settings.child_tuning == "F":
        return ChildTuning(method, settings.child_p, settings.seed)
    found = fisher(method, _batches(method, corpus, rows, settings, accelerator), accelerator)
    return ChildTuning(method, settings.child_p, settings.seed, largest(found, settings.child_p))


def fisher(method: Method, drawn: Iterable[Batch], accelerator: Accelerator) -> dict[str, Tensor]:
    """The mean square of the loss's gradient, over batches, for every weight of the backbone's blocks."""
    blocks = _blocks(method)
    squares = {name: torch.zeros_like(parameter) for name, parameter in blocks.items()}
    count = 0
    with bar("Fisher information", None) as advance:
        for batch in drawn:
            for square, gradient in zip(
                squares.values(), _gradients(method, batch, list(blocks.values()), accelerator), strict=True
            ):
                square.addcmul_(gradient, gradient)
            count += 1
            advance(1)
    for square in squares.values():
        square.div_(max(count, 1))
        if processes() > 1:
            distributed.all_reduce(square)
    return squares


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


def _blocks(method: Method) -> dict[str, nn.Parameter]:
    inside = {id(parameter) for name, parameter in method.encoder.named_parameters() if BLOCK.search(name)}
    found = {
        name: parameter
        for name, parameter in method.named_parameters()
        if id(parameter) in inside and parameter.requires_grad
    }
    if not found:
        raise InputError(
            "Child-Tuning D chooses among the weights of the backbone's layers, and this model has none that are trained."
        )
    return found


def _batches(
    method: Method, corpus: Corpus, rows: Rows, settings: LoopSettings, accelerator: Accelerator
) -> Iterator[Batch]:
    """Records one by one; where a record alone has no gradient, because records are compared with each other, batches
    of them.
    """
    whole = batches(method.batches, corpus, rows, settings.batch_size, settings.seed, 0)
    together = islice(whole, max(settings.child_samples // settings.batch_size, 1))
    if settings.child_fisher == "batches" or method.batches != "unique":
        return _made(method, corpus, together, settings, accelerator)
    order = np.random.default_rng([settings.seed, FISHER]).permutation(len(rows))[: settings.child_samples]
    alone = _made(method, corpus, (rows[[row]] for row in order), settings, accelerator)
    first = next(alone)
    if any(bool(gradient.any()) for gradient in _gradients(method, first, list(_blocks(method).values()), accelerator)):
        return chain([first], alone)
    return _made(method, corpus, together, settings, accelerator)


def _made(
    method: Method, corpus: Corpus, chosen: Iterable[Rows], settings: LoopSettings, accelerator: Accelerator
) -> Iterator[Batch]:
    """Each process has its own, in turn."""
    for number, members in enumerate(chosen):
        if number % accelerator.num_processes == accelerator.process_index:
            rng = np.random.default_rng([settings.seed, FISHER, number])
            yield Batch(
                method.views(Records(corpus, members.tolist()), rng),
                len(members),
                keyed_seed(settings.seed, FISHER, number),
            )


def _gradients(method: Method, batch: Batch, parameters: list[nn.Parameter], accelerator: Accelerator) -> list[Tensor]:
    torch.manual_seed(batch.seed)
    with accelerator.autocast():
        representations = method.represent(batch.to(accelerator.device))
    floats = {
        name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in representations.items()
    }
    loss = method.total(method.loss(floats, batch))
    if not loss.requires_grad:
        return [torch.zeros_like(parameter) for parameter in parameters]
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    return [
        torch.zeros_like(p) if gradient is None else gradient for p, gradient in zip(parameters, gradients, strict=True)
    ]
