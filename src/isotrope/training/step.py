"""One update's gradient: represent, gather, compare, backward. In chunks where the batch does not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.measures.information import info_bound
from isotrope.methods.frame.method import Batch, Method
from isotrope.training.gathering import gather_representations

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class Outcome:
    """``terms`` and ``measures`` stay on the device until somebody logs them."""

    loss: Tensor
    terms: dict[str, Tensor]
    measures: dict[str, Tensor]  # what is logged beside the terms
    representations: dict[str, Tensor]  # of the whole batch, without gradient
    candidates: int


def keyed_seed(*key: int) -> int:
    return int(np.random.SeedSequence(key).generate_state(1)[0])


def compute_gradient(
    method: Method,
    batch: Batch,
    accelerator: Accelerator,
    key: tuple[int, ...],
    chunk_size: int | None = None,
    share: float = 1.0,
) -> Outcome:
    """Add ``share`` times the gradient of the batch's loss to the parameters.

    With chunks (Gao et al. 2021, "gradient cache"): represent each chunk without gradient, take the loss's gradient
    with respect to the representations, then represent each chunk again under the same dropout masks and pass that
    gradient on. The chance of a forward is keyed by ``key`` and the chunk, so both passes agree, and a resumed run
    repeats the interrupted one.
    """
    chunks = batch.chunks(chunk_size)
    cached = len(chunks) > 1
    with torch.set_grad_enabled(not cached):
        parts = [_represent(method, chunk, accelerator, (*key, number)) for number, chunk in enumerate(chunks)]
    local = parts[0] if not cached else {name: _leaf([part[name] for part in parts]) for name in parts[0]}
    gathered = gather_representations(local, method.ragged)
    terms = method.loss(gathered, batch)
    loss = method.total(terms)
    if not loss.requires_grad:
        raise InputError("The loss has no gradient: nothing that is trained at this step takes part in it.")
    accelerator.backward(loss * share)
    if cached:
        for number, chunk in enumerate(chunks):
            again = _represent(method, chunk, accelerator, (*key, number))
            starts = {name: sum(len(part[name]) for part in parts[:number]) for name in again}
            wanted = [(tensor, local[name].grad) for name, tensor in again.items() if tensor.requires_grad]
            slices = [starts[name] for name, tensor in again.items() if tensor.requires_grad]
            torch.autograd.backward(
                [tensor for tensor, _ in wanted],
                [
                    torch.zeros_like(tensor) if grad is None else grad[start : start + len(tensor)]
                    for (tensor, grad), start in zip(wanted, slices, strict=True)
                ],
            )
    detached = {name: tensor.detach() for name, tensor in gathered.items()}
    terms = {name: term.detach() for name, term in terms.items()}
    candidates = method.candidates(detached)
    told = candidates > 0 and "contrastive" in terms
    information = {"information": info_bound(terms["contrastive"], candidates)} if told else {}
    return Outcome(loss.detach(), terms, {**information, **method.measures(detached)}, detached, candidates)


def _leaf(parts: list[Tensor]) -> Tensor:
    joined = torch.cat(parts)
    return joined.requires_grad_() if joined.is_floating_point() else joined


def _represent(method: Method, chunk: Batch, accelerator: Accelerator, key: tuple[int, ...]) -> dict[str, Tensor]:
    torch.manual_seed(keyed_seed(*key))
    with accelerator.autocast():
        representations = method.represent(chunk.to(accelerator.device))
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in representations.items()}
