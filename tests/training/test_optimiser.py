"""Optimisers by name: which weights Muon takes, state that survives a save, one list of groups for the schedule."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest
import torch
from torch import nn

import isotrope
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method_registry import find
from isotrope.training.loop_settings import OPTIMISERS, LoopSettings
from isotrope.training.optimiser import Joined, build_optimiser, build_schedule, hidden_matrices


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


def joined(model: Tied, rate: float = 0.01) -> Joined:
    matrices = hidden_matrices(model)
    taken = {id(weight) for weight in matrices}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in taken]
    muon = torch.optim.Muon(matrices, lr=rate, weight_decay=0.1, adjust_lr_fn="match_rms_adamw")
    return Joined([muon, torch.optim.AdamW(rest, lr=rate, weight_decay=0.0)])


def step(model: Tied, optimiser: torch.optim.Optimizer, seed: int) -> None:
    ids = torch.randint(11, (32,), generator=torch.Generator().manual_seed(seed))
    nn.functional.cross_entropy(model(ids), ids).backward()
    optimiser.step()
    optimiser.zero_grad()


def test_muon_takes_linear_maps_that_share_nothing_with_a_table() -> None:
    model = Tied()
    assert [id(weight) for weight in hidden_matrices(model)] == [id(model.up.weight), id(model.down.weight)]


def test_state_survives_a_save_and_the_schedule_writes_to_both_members() -> None:
    torch.manual_seed(0)
    model = Tied()
    optimiser = joined(model)
    schedule = build_schedule(optimiser, lambda number: 1 / (number + 1))
    for number in range(3):
        step(model, optimiser, number)
        schedule.step()
    assert {group["lr"] for member in optimiser.members for group in member.param_groups} == {0.01 / 4}
    other = copy.deepcopy(model)
    again = joined(other)
    again.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    for number in range(3, 6):
        step(model, optimiser, number)
        step(other, again, number)
    for first, second in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(first, second)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_every_optimiser_takes_every_tensor_once_and_moves_it(name: str, tiny: Path) -> None:
    torch.manual_seed(0)
    kind = find("simcse")
    combined = Combined(kind(kind.Settings(), isotrope.load(tiny, pooling="cls", device="cpu"), 32))
    optimiser = build_optimiser(combined, LoopSettings(optimiser=name, learning_rate=0.01))
    listed = [id(parameter) for group in optimiser.param_groups for parameter in group["params"]]
    assert sorted(listed) == sorted(id(parameter) for parameter in combined.parameters())
    before = [parameter.detach().clone() for parameter in combined.parameters()]
    for parameter in combined.parameters():
        parameter.grad = torch.randn_like(parameter)
    optimiser.step()
    assert all(not torch.equal(old, new) for old, new in zip(before, combined.parameters(), strict=True))


@pytest.mark.parametrize(("momentum", "moved"), [(0.0, 0.2), (0.5, 0.25), (0.9, 0.29)])
def test_sgd_has_momentum(momentum: float, moved: float, tiny: Path) -> None:
    """v ← μ v + g, θ ← θ − η v: after two steps of a gradient of 1, η (1 + (1 + μ))."""
    kind = find("simcse")
    combined = Combined(kind(kind.Settings(), isotrope.load(tiny, device="cpu"), 32))
    settings = LoopSettings(optimiser="sgd", learning_rate=0.1, sgd_momentum=momentum, weight_decay=0.0)
    optimiser = build_optimiser(combined, settings)
    weight = next(combined.parameters())
    before = weight.detach().clone()
    for _ in range(2):
        weight.grad = torch.ones_like(weight)
        optimiser.step()
    assert torch.allclose(before - weight, torch.full_like(weight, moved), atol=1e-5)


@pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")
@pytest.mark.parametrize("longest", [1e-3, None])
def test_the_gradient_is_clipped_or_not(longest: float | None, tiny: Path, sentences: Path, tmp_path: Path) -> None:
    settings = {"optimiser": "sgd", "learning_rate": 0.01, "weight_decay": 0.0, "warmup_ratio": 0.0, "max_steps": 1}
    settings |= {"keep_start": False, "batch_size": 16, "max_grad_norm": longest}
    run = isotrope.train("simcse", sentences, tiny, tmp_path / "run", pooling="mean", **settings)
    start, end = isotrope.load(tiny, device="cpu").state_dict(), run.encoder.cpu().state_dict()
    moved = sum(float((end[name] - weight).double().pow(2).sum()) for name, weight in start.items()) ** 0.5
    norm = next(line["gradient_norm"] for line in run.history if "gradient_norm" in line)
    assert norm > 0.01
    assert moved == pytest.approx(0.01 * (longest or norm), rel=1e-2)


def test_rmsprop_divides_by_the_root_of_a_running_mean_of_squares(tiny: Path) -> None:
    """By hand, two steps of gradients 1 and 3: v ← 0.9 v + 0.1 g², w ← w − rate · g / √v."""
    combined = Combined(find("simcse")(find("simcse").Settings(), isotrope.load(tiny, device="cpu")))
    settings = LoopSettings(optimiser="rmsprop", learning_rate=0.01, weight_decay=0.0)
    optimiser = build_optimiser(combined, settings)
    (weight, *_) = combined.encoder.parameters()
    start, expected, square = weight.detach().clone(), 0.0, 0.0
    for gradient in (1.0, 3.0):
        weight.grad = torch.full_like(weight, gradient)
        optimiser.step()
        square = 0.9 * square + 0.1 * gradient**2
        expected -= 0.01 * gradient / square**0.5
    assert torch.allclose(weight - start, torch.full_like(weight, expected), atol=1e-6)
