"""Consistency of rankings: golden values, a naive twin, the bounds of the divergence."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from isotrope.objectives import info_nce, jensen_shannon, ranking_consistency

P, Q = torch.tensor([[0.7, 0.2, 0.1]]).double(), torch.tensor([[0.5, 0.3, 0.2]]).double()
C = torch.tensor([[0.9, 0.2, 0.1], [0.3, 0.8, 0.0], [-0.1, 0.4, 0.7]], dtype=torch.float64)  # specs/1, section 1.9


def naive_jensen_shannon(p: list[float], q: list[float]) -> float:
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    return 0.5 * sum(x * math.log(x / m) for side in (p, q) for x, m in zip(side, middle, strict=True) if x > 0)


def drawn(seed: int, *shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_golden_value_and_not_minus_the_entropy() -> None:
    """specs/1, section 6.6: a known reimplementation clamps the logarithm and gets −0.91574, minus the mean entropy."""
    assert float(jensen_shannon(P.log(), Q.log())) == pytest.approx(0.021901, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_equal_to_the_naive_twin(seed: int, scale: float) -> None:
    first, second = scale * drawn(seed, 5, 9), scale * drawn(seed + 100, 5, 9)
    rows = zip(first.softmax(dim=-1).tolist(), second.softmax(dim=-1).tolist(), strict=True)
    expected = sum(naive_jensen_shannon(p, q) for p, q in rows) / 5
    assert float(jensen_shannon(first, second)) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_equal_is_zero_apart_is_log_2_and_the_sides_may_be_swapped(dtype: torch.dtype) -> None:
    scores = (20 * drawn(0, 6, 6)).to(dtype).requires_grad_()
    same = jensen_shannon(scores, scores)
    assert float(same.detach()) == pytest.approx(0.0, abs=1e-7)
    (gradient,) = torch.autograd.grad(same, scores)
    assert float(gradient.abs().max()) < 1e-6
    apart = torch.tensor([[1000.0, -1000.0]], dtype=dtype, requires_grad=True)
    most = jensen_shannon(apart, -apart)
    assert float(most.detach()) == pytest.approx(math.log(2), rel=1e-6)
    assert torch.isfinite(torch.autograd.grad(most, apart)[0]).all()
    other = (20 * drawn(1, 6, 6)).to(dtype)
    assert float(jensen_shannon(scores, other).detach()) == pytest.approx(
        float(jensen_shannon(other, scores).detach()), rel=1e-6
    )


def test_minimising_it_does_not_ask_for_uniform_distributions() -> None:
    sharp, flat = torch.tensor([[9.0, 0.0, 0.0]]), torch.tensor([[1.0, 0.0, 0.0]])
    assert float(jensen_shannon(sharp, sharp)) == float(jensen_shannon(flat, flat)) == 0.0


@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_the_two_views_rank_by_rows_and_by_columns(temperature: float) -> None:
    rest = (1 - C.pow(2).sum(dim=0, keepdim=True)).sqrt()
    first, second = torch.eye(3, 4, dtype=torch.float64), torch.cat([C, rest]).T  # cos(first_i, second_j) = C_ij
    p, q = (C / temperature).softmax(dim=1), (C.T / temperature).softmax(dim=1)
    expected = sum(naive_jensen_shannon(a, b) for a, b in zip(p.tolist(), q.tolist(), strict=True)) / 3
    assert float(ranking_consistency(first, second, temperature)) == pytest.approx(expected, rel=1e-8)
    # P_ii is what info_nce looks at.
    assert float(info_nce(first, second, temperature)) == pytest.approx(float(-p.diagonal().log().mean()), rel=1e-10)
    assert float(ranking_consistency(first, first, temperature)) == 0.0
