"""Muon: orthogonal updates of a known size, everything else left to AdamW, state that survives a save."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

from isotrope.training.muon import Muon, hidden_matrices, orthogonal


class Tied(nn.Module):
    """A table, two linear maps, a norm, and an output map that shares the table."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 6)
        self.up, self.down = nn.Linear(6, 12), nn.Linear(12, 6)
        self.norm = nn.LayerNorm(6)
        self.output = nn.Linear(6, 11)
        self.output.weight = self.table.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.output(self.norm(self.down(torch.tanh(self.up(self.table(ids))))))


def built(model: Tied, rate: float = 0.01) -> Muon:
    matrices = hidden_matrices(model)
    taken = {id(weight) for weight in matrices}
    rest = torch.optim.AdamW([p for p in model.parameters() if id(p) not in taken], lr=rate, weight_decay=0.0)
    return Muon(matrices, rest, rate, weight_decay=0.1)


def step(model: Tied, optimiser: Muon, seed: int) -> None:
    ids = torch.randint(11, (32,), generator=torch.Generator().manual_seed(seed))
    nn.functional.cross_entropy(model(ids), ids).backward()
    optimiser.step()
    optimiser.zero_grad()


@pytest.mark.parametrize("shape", [(3, 40, 40), (2, 96, 32), (2, 32, 96)])
def test_singular_values_become_one_and_directions_stay(shape: tuple[int, ...]) -> None:
    torch.manual_seed(0)
    left, values, right = torch.linalg.svd(torch.randn(shape), full_matrices=False)
    matrices = left @ torch.diag_embed(values.clamp(min=0.05 * float(values.max()))) @ right
    result = orthogonal(matrices)
    assert torch.linalg.svdvals(result).sub(1).abs().max() < 0.15
    assert torch.allclose(result, left @ right, atol=0.15)
    assert torch.allclose(orthogonal(1000 * matrices), result, atol=1e-4)


def test_tables_and_what_is_tied_to_them_are_no_hidden_matrices() -> None:
    model = Tied()
    assert {id(weight) for weight in hidden_matrices(model)} == {id(model.up.weight), id(model.down.weight)}
    model.up.requires_grad_(False)
    assert [id(weight) for weight in hidden_matrices(model)] == [id(model.down.weight)]


def test_the_first_step_is_decay_and_an_orthogonal_move_of_the_stated_size() -> None:
    torch.manual_seed(0)
    model = Tied()
    before = model.up.weight.detach().clone()
    optimiser = built(model, rate=0.01)
    ids = torch.arange(11)
    nn.functional.cross_entropy(model(ids), ids).backward()
    expected = before * (1 - 0.01 * 0.1) - 0.01 * 0.2 * 12**0.5 * orthogonal(1.95 * model.up.weight.grad[None])[0]  # type: ignore[index]
    optimiser.step()
    assert torch.allclose(model.up.weight, expected, atol=1e-6)
    assert model.table.weight.grad is not None  # AdamW's part moved too
    assert optimiser.rest.state[model.table.weight]["step"] == 1


def test_state_saved_and_put_back_goes_on_the_same() -> None:
    torch.manual_seed(0)
    model = Tied()
    optimiser = built(model)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda number: 1 / (1 + number))
    for seed in range(3):
        step(model, optimiser, seed)
        schedule.step()
    twin = copy.deepcopy(model)
    second = built(twin)
    second.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    assert [group["lr"] for group in second.param_groups] == [group["lr"] for group in optimiser.param_groups]
    assert second.param_groups[1] is second.rest.param_groups[0]  # a schedule still reaches AdamW
    for seed in range(3, 6):
        step(model, optimiser, seed)
        step(twin, second, seed)
    for first, other in zip(model.parameters(), twin.parameters(), strict=True):
        assert torch.equal(first, other)
