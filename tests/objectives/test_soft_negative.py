"""The margin with two sides: golden values, the band without a gradient."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives import bidirectional_margin


def at_cosine(cosine: float) -> Tensor:
    return torch.tensor([[cosine, math.sqrt(1 - cosine**2)]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("gap", "loss"), [(-0.05, 0.05), (-0.4, 0.1), (-0.1, 0.0), (-0.2, 0.0), (-0.3, 0.0), (0.1, 0.2)]
)
def test_golden_values(gap: float, loss: float) -> None:
    """Δ = cos(h, n) − cos(h, p), with α = 0.1 and β = 0.3."""
    anchor = torch.tensor([[2.0, 0.0]], dtype=torch.float64)
    found = bidirectional_margin(anchor, 3 * at_cosine(0.8), at_cosine(0.8 + gap))
    assert float(found) == pytest.approx(loss, abs=1e-9)


def test_it_is_the_mean_of_a_naive_loop() -> None:
    generator = torch.Generator().manual_seed(3)
    anchors, positives, negatives = torch.randn(3, 20, 5, generator=generator, dtype=torch.float64)
    total = 0.0
    for a, p, n in zip(anchors.tolist(), positives.tolist(), negatives.tolist(), strict=True):
        near, far = (sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b) for b in (p, n))
        total += max(0.0, far - near + 0.2) + max(0.0, near - far - 0.5)
    assert float(bidirectional_margin(anchors, positives, negatives, 0.2, 0.5)) == pytest.approx(total / 20, abs=1e-12)


def test_inside_the_band_nothing_is_trained() -> None:
    anchor = torch.tensor([[1.0, 0.0]], requires_grad=True)
    bidirectional_margin(anchor, at_cosine(0.8).float(), at_cosine(0.6).float()).backward()
    assert anchor.grad is not None
    assert not anchor.grad.any()


def test_a_band_that_is_none_is_refused() -> None:
    with pytest.raises(InputError, match="least must not be negative and at most most"):
        bidirectional_margin(torch.eye(2), torch.eye(2), torch.eye(2), 0.3, 0.1)
