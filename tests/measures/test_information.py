"""The bound on the mutual information: its values, and that it is a bound where the information is known."""

from __future__ import annotations

import math

import pytest
import torch

from isotrope.errors import InputError
from isotrope.measures.information import info_bound
from isotrope.objectives import contrast, info_nce


def test_a_collapsed_encoder_knows_nothing_and_a_perfect_one_all_that_the_candidates_can_show() -> None:
    same, apart = torch.ones(512, 3), torch.eye(512)
    assert float(info_bound(info_nce(same, same), 512)) == pytest.approx(0, abs=1e-5)
    assert float(info_bound(info_nce(apart, apart), 512)) == pytest.approx(6.24, abs=5e-3)


def gaussian_estimate(correlation: float, candidates: int) -> float:
    """InfoNCE of a bivariate Gaussian under its best critic, log p(y|x)/p(y)."""
    generator = torch.Generator().manual_seed(0)
    x, noise = torch.randn(2, 4000 // candidates, candidates, dtype=torch.float64, generator=generator)
    y = correlation * x + math.sqrt(1 - correlation**2) * noise
    spread = 1 - correlation**2
    # [batch, anchor, candidate]; what hangs on the anchor alone falls out of the softmax.
    critic = -(y.unsqueeze(1) - correlation * x.unsqueeze(2)).pow(2) / (2 * spread) + y.unsqueeze(1).pow(2) / 2
    loss = contrast(critic.flatten(0, 1), torch.arange(candidates).repeat(len(x)))
    return float(info_bound(loss, candidates))


@pytest.mark.parametrize("correlation", [0.5, 0.9, 0.99])
def test_the_estimate_lies_below_the_information_of_a_gaussian_and_nears_it(correlation: float) -> None:
    information = -0.5 * math.log(1 - correlation**2)
    few, many = gaussian_estimate(correlation, 4), gaussian_estimate(correlation, 500)
    assert few < min(information, math.log(4))
    assert few < many < information + 0.05  # the noise of 4000 draws
    assert many > 0.9 * information


def test_independent_views_share_nothing() -> None:
    x, y = torch.randn(2, 200, 50, 3, generator=torch.Generator().manual_seed(1))
    estimates = [float(info_bound(info_nce(a, b, 1.0), 50)) for a, b in zip(x, y, strict=True)]
    assert sum(estimates) / len(estimates) < 0


def test_the_gradient_is_that_of_the_loss_turned_round() -> None:
    loss = torch.tensor(1.5, requires_grad=True)
    info_bound(loss, 8).backward()
    assert float(loss.grad) == -1


def test_no_candidates_are_refused() -> None:
    with pytest.raises(InputError, match="at least 1; 0 was given"):
        info_bound(torch.tensor(0.0), 0)
