"""One update's gradient: represent, gather, compare, backward. In chunks where the batch does not fit into memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from isotrope.data.random_streams import Key, keyed_seed
from isotrope.encoders.dropout_masks import BitDropout
from isotrope.errors import InputError
from isotrope.measures.information import info_bound
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.training.gathering import gather_representations

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True)
class Outcome:
    """``terms`` and ``measures`` stay on the device until somebody logs them."""

    loss: Tensor
    terms: dict[str, Tensor]
    measures: dict[str, Tensor]
    representations: dict[str, Tensor]  # of the whole batch, without gradient
    candidates: int


def seed_device(seed: int, device: torch.device) -> None:
    """``torch.manual_seed`` for the host and one device; that of all devices takes milliseconds."""
    if device.type == "cuda":
        torch.default_generator.manual_seed(seed)
        torch.cuda.default_generators[device.index or 0].manual_seed(seed)
    else:
        torch.manual_seed(seed)


@contextmanager
def callers_random_state() -> Iterator[None]:
    """Behind the block torch's generators go on where the caller left them, whatever a run has seeded inside it."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_initialized() else []
    with torch.random.fork_rng(devices):
        yield


def compute_gradient(
    combined: Combined,
    batch: Batch,
    accelerator: Accelerator,
    key: Key,
    chunk_size: int | None = None,
    share: float = 1.0,
) -> Outcome:
    """Add ``share`` times the gradient of the batch's loss to the parameters.

    With chunks (Gao et al. 2021, "gradient cache"): represent each chunk without gradient, take the loss's gradient
    with respect to the representations, then represent each chunk again under the same dropout masks and pass that
    gradient on. What a forward draws is keyed by ``key`` and the chunk, so both passes agree, and a resumed run repeats
    the interrupted one.
    """
    chunks = batch.chunks(chunk_size)
    cached = len(chunks) > 1
    with torch.set_grad_enabled(not cached):
        parts = [represent(combined, chunk, accelerator, (*key, number)) for number, chunk in enumerate(chunks)]
    local = parts[0] if not cached else {name: _leaf([part[name] for part in parts]) for name in parts[0]}
    gathered = gather_representations(local, combined.ragged)
    terms = combined.loss(gathered, batch.generator())
    loss = combined.total(terms)
    if not loss.requires_grad:
        raise InputError("The loss has no gradient: nothing that is trained at this step takes part in it.")
    accelerator.backward(loss * share)
    if cached:
        _pass_on(combined, chunks, local, accelerator, key)
    detached = {name: tensor.detach() for name, tensor in gathered.items()}
    terms = {name: term.detach() for name, term in terms.items()}
    candidates = combined.method.candidates(detached)
    contrasts = candidates > 0 and "contrastive" in terms
    information = {"information": info_bound(terms["contrastive"], candidates)} if contrasts else {}
    return Outcome(loss.detach(), terms, {**information, **combined.measures(detached)}, detached, candidates)


def represent(combined: Combined, batch: Batch, accelerator: Accelerator, key: Key) -> dict[str, Tensor]:
    """Representations of a batch or a chunk of it, in float32; what the forward draws is keyed by ``key``."""
    return represent_seeded(combined, batch, accelerator, keyed_seed("forward", *key))


def represent_seeded(combined: Combined, batch: Batch, accelerator: Accelerator, seed: int) -> dict[str, Tensor]:
    """The same, from a seed."""
    seed_device(seed, accelerator.device)
    # On another device the mode would only cost: it sees every operator.
    masks = BitDropout() if accelerator.device.type == "cpu" else nullcontext()
    with accelerator.autocast(), masks:
        representations = combined.represent(batch.to(accelerator.device))
    return {name: tensor.float() if tensor.is_floating_point() else tensor for name, tensor in representations.items()}


def _pass_on(
    combined: Combined, chunks: list[Batch], local: dict[str, Tensor], accelerator: Accelerator, key: Key
) -> None:
    """The gradient with respect to the representations, through each chunk's forward once more."""
    starts = dict.fromkeys(local, 0)
    for number, chunk in enumerate(chunks):
        again = represent(combined, chunk, accelerator, (*key, number))
        tensors, gradients = [], []
        for name, tensor in again.items():
            whole, start = local[name].grad, starts[name]
            starts[name] += len(tensor)
            if tensor.requires_grad and whole is not None:  # what the loss leaves out has no gradient, not one of zeros
                tensors.append(tensor)
                gradients.append(whole[start : starts[name]])
        if tensors:
            torch.autograd.backward(tensors, gradients)


def _leaf(parts: list[Tensor]) -> Tensor:
    joined = torch.cat(parts)
    return joined.requires_grad_() if joined.is_floating_point() else joined
