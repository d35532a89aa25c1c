"""A memory bank holds a vector for each record: how it fills, how a vector moves, what is drawn."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from isotrope.objectives.vectors import unit
from isotrope.towers.memory_bank import MemoryBank


def batch(size: int, seed: int, width: int = 4) -> Tensor:
    return 3 * torch.randn(size, width, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("momentum", [0.0, 0.5, 0.9])
def test_vectors_move_by_the_formula_and_only_those_just_seen(momentum: float) -> None:
    """Against a dictionary and a loop, in float64."""
    bank = MemoryBank(7, 4, momentum)
    expected: dict[int, Tensor] = {}
    for step, rows in enumerate(([2, 5], [5, 0], [2, 5], [6])):
        queries = batch(len(rows), step)
        bank.after_update({"rows": torch.tensor(rows), "queries": queries, "keys": batch(len(rows), 99)})
        for row, query in zip(rows, queries.double(), strict=True):
            new = query / query.norm()
            moved = momentum * expected[row] + (1 - momentum) * new if row in expected else new
            expected[row] = moved / moved.norm()
    assert bank.seen.nonzero().flatten().tolist() == sorted(expected)
    assert bank.filled() == pytest.approx(4 / 7)
    for row, vector in expected.items():
        torch.testing.assert_close(bank.vectors[row].double(), vector, atol=1e-6, rtol=0)
    assert not bank.vectors[[1, 3, 4]].any()


def test_a_filled_bank_holds_unit_vectors_without_gradient() -> None:
    bank, vectors = MemoryBank(5, 4, 0.5), batch(2, 1).requires_grad_()
    bank.fill(torch.tensor([1, 4]), vectors)
    torch.testing.assert_close(bank.vectors[[1, 4]], unit(vectors).detach())
    assert bank.seen.tolist() == [False, True, False, False, True]
    assert not bank.vectors.requires_grad


def test_draws_are_different_records_and_the_generators_alone() -> None:
    bank = MemoryBank(50, 4, 0.5)
    first, again = (bank.draw(20, torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, again)
    assert len(set(first.tolist())) == 20
    assert set(bank.draw(50, torch.Generator()).tolist()) == set(range(50))
    assert not torch.equal(first, bank.draw(20, torch.Generator().manual_seed(6)))


def test_half_precision_does_not_reach_the_vectors() -> None:
    bank = MemoryBank(3, 4, 0.5)
    bank.after_update({"rows": torch.tensor([1]), "queries": batch(1, 0).bfloat16().requires_grad_()})
    assert bank.vectors.dtype == torch.float32
    assert not bank.vectors.requires_grad
    torch.testing.assert_close(bank.vectors[1].norm(), torch.tensor(1.0))
