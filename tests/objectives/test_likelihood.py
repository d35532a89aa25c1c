"""The likelihood of a flow: golden values of the specs, and a change of variables by hand."""

from __future__ import annotations

import math

import pytest
import torch

from isotrope.objectives import bits_per_dimension


def test_the_origin_under_the_identity() -> None:
    """½ log₂ 2π."""
    assert float(bits_per_dimension(torch.zeros(3, 8), torch.zeros(3))) == pytest.approx(1.325748, abs=1e-6)


def test_a_standard_normal_costs_its_entropy() -> None:
    """½ log₂ 2πe."""
    latents = torch.randn(20_000, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert float(bits_per_dimension(latents, torch.zeros(20_000))) == pytest.approx(2.047096, abs=5e-3)


def test_a_scaled_normal_costs_one_bit_more_for_twice_the_width() -> None:
    """u = 2z: log |det ∂z/∂u| = −d log 2."""
    latents = torch.randn(5, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    plain = float(bits_per_dimension(latents, torch.zeros(5)))
    assert float(bits_per_dimension(latents, torch.full((5,), -4 * math.log(2), dtype=torch.float64))) == pytest.approx(
        plain + 1, abs=1e-9
    )


def test_equal_to_the_density_of_torch() -> None:
    """A Gaussian with a covariance of its own, whitened by hand."""
    generator = torch.Generator().manual_seed(2)
    factor = torch.randn(3, 3, generator=generator, dtype=torch.float64).tril(-1) + torch.diag(
        torch.tensor([0.5, 2.0, 1.5]).double()
    )
    data = torch.randn(7, 3, generator=generator, dtype=torch.float64)
    density = torch.distributions.MultivariateNormal(torch.zeros(3).double(), scale_tril=factor).log_prob(data)
    latents = torch.linalg.solve_triangular(factor, data.T, upper=False).T
    log_det = (-factor.diagonal().log().sum()).expand(7)
    assert float(bits_per_dimension(latents, log_det)) == pytest.approx(
        float(-density.mean() / (3 * math.log(2))), rel=1e-12
    )
