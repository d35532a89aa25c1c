"""SNE and t-SNE: perplexity, naive twins, the papers' gradients, and what moves nothing."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives import joint_neighbours, neighbours, sne, symmetric_sne, t_sne


@pytest.fixture
def vectors() -> Tensor:
    return torch.randn(30, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.fixture
def points() -> Tensor:
    return torch.randn(30, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


@pytest.mark.parametrize("perplexity", [2.0, 5.0, 9.5])
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_rows_sum_to_one_and_reach_the_perplexity(vectors: Tensor, perplexity: float, scale: float) -> None:
    rows = neighbours(scale * vectors, perplexity)
    assert torch.allclose(rows.sum(dim=1), torch.ones(30).double())
    assert rows.diagonal().tolist() == [0.0] * 30
    reached = torch.special.entr(rows).sum(dim=1).exp()
    assert torch.allclose(reached, torch.full((30,), perplexity).double(), atol=1e-5)


def test_the_joint_form_is_symmetric_and_sums_to_one(vectors: Tensor) -> None:
    joint = joint_neighbours(vectors, 5.0)
    assert torch.equal(joint, joint.T)
    assert float(joint.sum()) == pytest.approx(1)


def test_the_neighbours_of_three_points_on_a_line() -> None:
    """At 0, 1 and 3: p_{j|i} ∝ exp(−d²/2σ²), so log-ratios stand as the squared distances do."""
    rows = neighbours(torch.tensor([[0.0], [1.0], [3.0], [10.0]], dtype=torch.float64), 1.5)
    ratio = math.log(rows[0, 1] / rows[0, 2]) / math.log(rows[0, 1] / rows[0, 3])
    assert ratio == pytest.approx((9 - 1) / (100 - 1), rel=1e-6)


def test_duplicates_share_a_row_and_nothing_breaks(vectors: Tensor) -> None:
    vectors[:10] = vectors[0]
    rows = neighbours(vectors, 3.0)
    assert torch.isfinite(rows).all()
    assert torch.allclose(rows[0, 1:10], torch.full((9,), 1 / 9).double(), atol=1e-6)


@pytest.mark.parametrize("perplexity", [0.5, 29.0, 100.0, math.nan])
def test_a_perplexity_that_cannot_be(vectors: Tensor, perplexity: float) -> None:
    with pytest.raises(InputError, match="perplexity must lie between 1 and"):
        neighbours(vectors, perplexity)


def naive(points: Tensor, targets: Tensor, kernel: Callable[[float], float], joint: bool) -> float:
    n, values = len(points), points.tolist()
    near = [
        [
            kernel(sum((a - b) ** 2 for a, b in zip(values[i], values[j], strict=True))) if i != j else 0
            for j in range(n)
        ]
        for i in range(n)
    ]
    total = 0.0
    for i in range(n):
        whole = sum(map(sum, near)) if joint else sum(near[i])
        total += sum(
            float(targets[i, j]) * math.log(float(targets[i, j]) / (near[i][j] / whole)) for j in range(n) if j != i
        )
    return total if joint else total / n


def test_equal_to_the_naive_twins(vectors: Tensor, points: Tensor) -> None:
    rows, joint = neighbours(vectors, 5.0), joint_neighbours(vectors, 5.0)
    assert float(sne(points, rows)) == pytest.approx(naive(points, rows, lambda d: math.exp(-d), False), rel=1e-10)
    assert float(symmetric_sne(points, joint)) == pytest.approx(
        naive(points, joint, lambda d: math.exp(-d), True), rel=1e-10
    )
    assert float(t_sne(points, joint)) == pytest.approx(naive(points, joint, lambda d: 1 / (1 + d), True), rel=1e-10)


def papers_gradient(points: Tensor, targets: Tensor, name: str) -> Tensor:
    gaps = points.unsqueeze(1) - points
    squared = gaps.pow(2).sum(dim=-1)
    kernel = 1 / (1 + squared) if name == "t_sne" else (-squared).exp()
    kernel = kernel.masked_fill(torch.eye(len(points), dtype=torch.bool), 0)
    if name == "sne":
        wrong = targets - kernel / kernel.sum(dim=1, keepdim=True)
        return 2 * ((wrong + wrong.T).unsqueeze(2) * gaps).sum(dim=1) / len(points)  # the paper sums, we take the mean
    wrong = targets - kernel / kernel.sum()
    return 4 * ((wrong * (kernel if name == "t_sne" else 1)).unsqueeze(2) * gaps).sum(dim=1)


@pytest.mark.parametrize("loss", [sne, symmetric_sne, t_sne])
def test_the_gradient_is_the_papers(loss: Callable[..., Tensor], vectors: Tensor, points: Tensor) -> None:
    targets = neighbours(vectors, 5.0) if loss is sne else joint_neighbours(vectors, 5.0)
    (gradient,) = torch.autograd.grad(loss(points.requires_grad_(), targets), points)
    assert torch.allclose(gradient, papers_gradient(points.detach(), targets, loss.__name__), atol=1e-12)
    assert torch.allclose(gradient.sum(dim=0), torch.zeros(2).double(), atol=1e-12)  # to move all points moves nothing


def test_nothing_is_lost_where_the_neighbours_agree(points: Tensor) -> None:
    near = (-torch.cdist(points, points).pow(2)).fill_diagonal_(-math.inf)
    assert float(sne(points, near.softmax(dim=1))) == pytest.approx(0, abs=1e-12)
    assert float(symmetric_sne(points, near.flatten().softmax(dim=0).view(30, 30))) == pytest.approx(0, abs=1e-12)
    heavy = (1 / (1 + torch.cdist(points, points).pow(2))).fill_diagonal_(0)
    assert float(t_sne(points, heavy / heavy.sum())) == pytest.approx(0, abs=1e-12)


def test_the_wrong_kind_of_targets_is_told(vectors: Tensor, points: Tensor) -> None:
    with pytest.raises(InputError, match="in each row"):
        sne(points, joint_neighbours(vectors, 5.0))
    with pytest.raises(InputError, match="all together"):
        t_sne(points, neighbours(vectors, 5.0))
