"""A process of two: gradients are averaged, whoever used a parameter; nobody waits who used all of them."""

from __future__ import annotations

from unittest import mock

import torch
from torch import distributed, nn

from isotrope.training.gathering import average_gradients


def main() -> None:
    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    used, first, none = (nn.Parameter(torch.zeros(size)) for size in (3, 2, 4))
    used.grad = torch.tensor([1.0, 2.0, 3.0]) * (1 + rank)
    first.grad = torch.tensor([5.0, 7.0]) if rank == 0 else None
    average_gradients([used, first, none])
    assert used.grad.tolist() == [1.5, 3.0, 4.5]
    assert first.grad is not None
    assert first.grad.tolist() == [2.5, 3.5]
    assert none.grad is None

    reads = ("tolist", "item", "__bool__", "__float__", "cpu", "numpy")
    used.grad = torch.full((3,), 1.0 + rank)
    with mock.patch.multiple(torch.Tensor, **dict.fromkeys(reads, _refuse)):
        average_gradients([used])
    assert used.grad.tolist() == [1.5, 1.5, 1.5]
    distributed.destroy_process_group()


def _refuse(*given: object) -> None:
    raise AssertionError("the host read a tensor, and waits for the device")


if __name__ == "__main__":
    main()
