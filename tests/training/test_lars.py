"""LARS: a step by hand, what is excluded, and the schedule that goes with it."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from isotrope.training.lars import LARS
from isotrope.training.optimiser import rise_and_fall


def stepped(weight: list[float], gradients: list[list[float]], adapts: bool = True, decay: float = 0.1) -> torch.Tensor:
    parameter = nn.Parameter(torch.tensor(weight))
    optimiser = LARS([{"params": [parameter], "lr": 2.0, "weight_decay": decay, "adapts": adapts}], momentum=0.9)
    for gradient in gradients:
        parameter.grad = torch.tensor(gradient)
        optimiser.step()
    return parameter.detach()


def test_two_steps_by_hand() -> None:
    """w = (3, 4), g = (0, 5), λ = 0.1: g becomes (0.3, 5.4), trust = 0.001 · 5 / ‖g‖; v ← 0.9 v + rate · trust · g."""
    w, v = [3.0, 4.0], [0.0, 0.0]
    for gradient in ([0.0, 5.0], [1.0, 0.0]):
        g = [gradient[i] + 0.1 * w[i] for i in range(2)]
        trust = 0.001 * math.hypot(*w) / math.hypot(*g)
        v = [0.9 * v[i] + 2.0 * trust * g[i] for i in range(2)]
        w = [w[i] - v[i] for i in range(2)]
    assert stepped([3.0, 4.0], [[0.0, 5.0], [1.0, 0.0]]).tolist() == pytest.approx(w, abs=1e-6)


def test_a_tensor_of_norm_zero_has_trust_one() -> None:
    assert stepped([0.0, 0.0], [[0.5, 0.0]]).tolist() == [-1.0, 0.0]
    assert stepped([1.0, 0.0], [[0.0, 0.0]], decay=0.0).tolist() == [1.0, 0.0]


def test_excluded_tensors_are_those_of_sgd_with_momentum() -> None:
    plain = nn.Parameter(torch.tensor([3.0, 4.0]))
    sgd = torch.optim.SGD([plain], lr=2.0, momentum=0.9)
    gradients = [[0.0, 5.0], [1.0, 0.0], [0.5, 0.5]]
    for gradient in gradients:
        plain.grad = torch.tensor(gradient)
        sgd.step()
    assert torch.allclose(stepped([3.0, 4.0], gradients, adapts=False, decay=0.0), plain.detach())


def test_the_cosine_falls_to_zero_behind_its_warm_up() -> None:
    found = [rise_and_fall(step, 100, 0.1, "cosine") for step in (9, 10, 55, 100)]
    assert found == pytest.approx([10 / 11, 1.0, 0.5, 0.0])


def test_a_constant_rate_stays_behind_its_warm_up() -> None:
    found = [rise_and_fall(step, 100, 0.1, "constant") for step in (4, 9, 10, 55, 99, 100)]
    assert found == pytest.approx([5 / 11, 10 / 11, 1.0, 1.0, 1.0, 1.0])
