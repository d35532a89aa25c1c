"""One place where processes meet: representations are gathered with gradient, gradients are averaged.

Every process computes the loss of the whole batch on gathered representations. The backward of the gather sums over
processes, so a process's own part arrives multiplied by their number, and the average of the gradients takes that
factor out again: what remains is the gradient of one process with the whole batch, exactly. Gathering without gradient
would lose what other processes want of our part.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

import torch
import torch.distributed as distributed
from torch import Tensor, nn


def processes() -> int:
    return distributed.get_world_size() if distributed.is_initialized() else 1


def gather_representations(representations: dict[str, Tensor], ragged: Collection[str] = ()) -> dict[str, Tensor]:
    """Rows of all processes, in the order of the processes. Those named ``ragged`` may differ in number."""
    if processes() == 1:
        return representations
    return {
        name: _gather_ragged(tensor) if name in ragged else _gather(tensor) for name, tensor in representations.items()
    }


def _gather(tensor: Tensor) -> Tensor:
    return torch.cat(_all_gather(tensor.contiguous()))


def _gather_ragged(tensor: Tensor) -> Tensor:
    sizes = [torch.zeros(1, dtype=torch.int64, device=tensor.device) for _ in range(processes())]
    distributed.all_gather(sizes, torch.tensor([len(tensor)], device=tensor.device))
    rows = [int(size) for size in sizes]
    padding = tensor.new_zeros(max(rows) - len(tensor), *tensor.shape[1:])
    parts = _all_gather(torch.cat([tensor, padding]))
    return torch.cat([part[:count] for part, count in zip(parts, rows, strict=True)])


class _AllGather(torch.autograd.Function):
    """All-gather whose backward gives each process the sum of what all processes want of its part."""

    @staticmethod
    def forward(ctx: object, tensor: Tensor) -> tuple[Tensor, ...]:
        parts = [torch.empty_like(tensor) for _ in range(processes())]
        distributed.all_gather(parts, tensor)
        return tuple(parts)

    @staticmethod
    def backward(ctx: object, *gradients: Tensor) -> Tensor:
        summed = torch.stack(gradients)
        distributed.all_reduce(summed)
        return summed[distributed.get_rank()]


_all_gather: Callable[[Tensor], tuple[Tensor, ...]] = _AllGather.apply


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Mean over processes. A parameter that one process did not use counts as zero there.

    One that no process used keeps no gradient: the optimiser passes it over, and it does not decay, as in one process.
    Who used what travels with the gradients, and the host reads it only where this process left a parameter out: a
    process that used all of them does not wait for the device.
    """
    every = list(parameters)
    if processes() == 1 or not every:
        return
    missing = [place for place, parameter in enumerate(every) if parameter.grad is None]
    used = torch.ones(len(every), device=every[0].device)
    for place in missing:
        used[place] = 0.0
    parts = [torch.zeros_like(one) if one.grad is None else one.grad for one in every]
    flat = torch.cat([used, *(part.flatten() for part in parts)])
    distributed.all_reduce(flat)
    found = flat[len(every) :].div_(processes()).split([part.numel() for part in parts])
    counts = flat[: len(every)].tolist() if missing else []
    nobody = {place for place in missing if not counts[place]}
    for place, (parameter, part, mean) in enumerate(zip(every, parts, found, strict=True)):
        if place not in nobody:
            part.copy_(mean.view_as(part))
            parameter.grad = part
