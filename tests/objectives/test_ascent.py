"""The inner step: where it points, how long it is, what it leaves alone."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from isotrope.objectives.ascent import steepest


def test_it_points_uphill_with_length_one() -> None:
    slope = torch.tensor([[3.0, 4.0], [0.0, -2.0]])
    found = steepest(lambda rows: (rows * slope).sum(), torch.zeros(2, 2))
    assert torch.allclose(found, torch.tensor([[0.6, 0.8], [0.0, -1.0]]))
    assert not found.requires_grad


def test_nothing_else_is_differentiated() -> None:
    layer = nn.Linear(3, 2)
    vectors = torch.randn(4, 3, requires_grad=True)
    with torch.no_grad():  # the caller's mode does not matter
        steepest(lambda rows: layer(rows).square().sum(), vectors)
    assert layer.weight.grad is None
    assert vectors.grad is None


@pytest.mark.parametrize("scale", [1e-35, 1e-20, 1.0, 1e30])
def test_the_length_is_one_however_flat_or_steep_the_slope(scale: float) -> None:
    found = steepest(lambda rows: scale * rows.sum(), torch.zeros(3, 4))
    assert torch.allclose(found.norm(dim=1), torch.ones(3))


def test_where_nothing_changes_there_is_no_step() -> None:
    assert torch.equal(steepest(lambda rows: 0 * rows.sum(), torch.ones(2, 3)), torch.zeros(2, 3))


def test_half_precision_is_widened() -> None:
    found = steepest(lambda rows: rows.sum(), torch.zeros(1, 4, dtype=torch.bfloat16))
    assert found.dtype == torch.float32
    assert float(found.norm()) == pytest.approx(1.0)
    assert math.isclose(float(found[0, 0]), 0.5, rel_tol=1e-6)
