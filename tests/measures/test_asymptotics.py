"""The two terms that the contrastive loss tends to, and the bound on the largest eigenvalue, against plain loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.measures.asymptotics import asymptotic_terms, eigenvalue_bound
from isotrope.objectives import info_nce


def rows(count: int, seed: int, shift: float = 0.0, width: int = 6) -> Tensor:
    return shift + torch.randn(count, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(a: Tensor, b: Tensor) -> float:
    return float(a @ b / (a.norm() * b.norm()))


@pytest.mark.parametrize("block", [4, 2048])
def test_both_terms_equal_a_loop(block: int) -> None:
    x, y, t = rows(9, 0), rows(9, 1), 0.2
    found = asymptotic_terms(x, y, t, block)
    assert float(found.alignment) == pytest.approx(-sum(cosine(a, b) for a, b in zip(x, y, strict=True)) / 9 / t)
    spread = [math.log(sum(math.exp(cosine(a, b) / t) for b in x) / 9) for a in x]
    assert float(found.uniformity) == pytest.approx(sum(spread) / 9)


def test_the_loss_tends_to_their_sum() -> None:
    """With one set of negatives InfoNCE minus log n differs by the positive's own place in the denominator only."""
    apart = []
    for count in (50, 5000):
        x = rows(count, 0, width=3)
        y = x + 0.1 * rows(count, 1, width=3)
        apart.append(abs(float(info_nce(x, y, 0.5)) - math.log(count) - float(sum(asymptotic_terms(x, y, 0.5)))))
    assert apart[1] < 0.005
    assert apart[1] < apart[0]


@pytest.mark.parametrize("shift", [0.0, 1.0, 5.0])
@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_uniformity_never_passes_its_floor(shift: float, temperature: float) -> None:
    for seed in range(5):
        x = rows(12, seed, shift)
        unit = x / x.norm(dim=1, keepdim=True)
        bound = eigenvalue_bound(x, temperature)
        total = sum(float(a @ b) for a in unit for b in unit)
        assert float(bound.similarities) == pytest.approx(total)
        assert float(bound.floor) == pytest.approx(total / (temperature * 144))
        assert float(asymptotic_terms(x, x, temperature).uniformity) >= float(bound.floor) - 1e-12
        assert float(bound.largest) == pytest.approx(float(torch.linalg.eigvalsh(unit @ unit.T)[-1]))
        assert bound.holds == bool((unit @ unit.T >= 0).all())
        if bound.holds:
            assert float(bound.similarities) >= float(bound.largest) - 1e-9


def test_the_sum_bounds_the_eigenvalue_of_a_cone_and_not_of_a_ball() -> None:
    cone, ball = eigenvalue_bound(rows(40, 0, 5.0)), eigenvalue_bound(torch.cat([rows(20, 0), -rows(20, 0)]))
    assert cone.holds
    assert float(cone.similarities) >= float(cone.largest)
    assert not ball.holds
    assert float(ball.similarities) < float(ball.largest)


def test_equal_vectors_meet_the_bounds() -> None:
    """m equal vectors: WWᵀ is all ones, its sum m², its largest eigenvalue m; uniformity and its floor are 1/τ."""
    bound = eigenvalue_bound(torch.ones(7, 3), 0.1)
    assert (float(bound.largest), float(bound.similarities)) == (pytest.approx(7), pytest.approx(49))
    terms = asymptotic_terms(torch.ones(7, 3), torch.ones(7, 3), 0.1)
    assert float(terms.uniformity) == pytest.approx(float(bound.floor)) == pytest.approx(10)
    assert float(terms.alignment) == pytest.approx(-10)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="one positive"):
        asymptotic_terms(rows(3, 0), rows(4, 0))
    with pytest.raises(InputError, match="temperature must be above 0"):
        eigenvalue_bound(rows(3, 0), 0.0)
    with pytest.raises(InputError, match="at least one row"):
        eigenvalue_bound(rows(0, 0))
