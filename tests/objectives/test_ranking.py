"""CoSENT: golden values, a naive twin, ties."""

from __future__ import annotations

import math

import pytest
import torch

from isotrope.objectives import cosent

LABELS = torch.tensor([1, 0, 0.5], dtype=torch.float64)


@pytest.mark.parametrize(("similarities", "expected"), [((0.9, 0.3, 0.5), 0.018485), ((0.3, 0.9, 0.5), 12.018485)])
def test_golden_values(similarities: tuple[float, ...], expected: float) -> None:
    assert float(cosent(torch.tensor(similarities, dtype=torch.float64), LABELS)) == pytest.approx(expected, abs=1e-6)


def naive_cosent(similarities: torch.Tensor, labels: torch.Tensor, scale: float) -> float:
    total = 1.0
    for s_i, y_i in zip(similarities.tolist(), labels.tolist(), strict=True):
        for s_j, y_j in zip(similarities.tolist(), labels.tolist(), strict=True):
            total += math.exp(scale * (s_i - s_j)) if y_i < y_j else 0.0
    return math.log(total)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_equal_to_the_naive_twin(seed: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    similarities = 2 * torch.rand(9, dtype=torch.float64, generator=generator) - 1
    labels = torch.randint(0, 5, (9,), generator=generator)
    assert float(cosent(similarities, labels, scale)) == pytest.approx(
        naive_cosent(similarities, labels, scale), rel=1e-10
    )


def test_equal_labels_are_not_compared() -> None:
    similarities = torch.tensor([0.9, -0.9, 0.1], requires_grad=True)
    loss = cosent(similarities, torch.full((3,), 2.5))
    (gradient,) = torch.autograd.grad(loss, similarities)
    assert float(loss.detach()) == 0
    assert gradient.tolist() == [0.0, 0.0, 0.0]


def test_only_the_order_of_the_labels_counts() -> None:
    similarities = torch.tensor([0.1, 0.7, 0.4], dtype=torch.float64)
    assert float(cosent(similarities, LABELS)) == float(cosent(similarities, 10 * LABELS.exp()))


def test_all_similarities_may_be_moved_together() -> None:
    similarities = torch.tensor([0.1, 0.7, 0.4], dtype=torch.float64)
    assert float(cosent(similarities - 0.3, LABELS)) == pytest.approx(float(cosent(similarities, LABELS)), rel=1e-12)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_wrong_order_is_finite_in_half_precision(dtype: torch.dtype) -> None:
    similarities = torch.tensor([-1.0, 1.0, 0.0], dtype=dtype, requires_grad=True)
    loss = cosent(similarities, LABELS, scale=5000.0)  # 10000 is beyond exp in any precision
    (gradient,) = torch.autograd.grad(loss, similarities)
    assert float(loss.detach()) == pytest.approx(10000.0)
    assert torch.isfinite(gradient).all()
    assert gradient.tolist() == pytest.approx([-5000.0, 5000.0, 0.0], rel=1e-2)
