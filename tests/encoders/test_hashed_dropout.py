"""Masks from a hash: the rate is right, and no two places, seeds or neighbours know of each other."""

from __future__ import annotations

import pytest
import torch

from isotrope.encoders.hashed_dropout import draw_seeds, hashed, hashed_dropout

SHAPE = (4096, 384)


def mask(seed: int, rate: float = 0.5) -> torch.Tensor:
    return hashed_dropout(torch.ones(SHAPE), rate, torch.tensor(seed, dtype=torch.int32)) > 0


def correlation(one: torch.Tensor, two: torch.Tensor) -> float:
    return float(torch.corrcoef(torch.stack([one.flatten().double(), two.flatten().double()]))[0, 1])


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_the_rate_is_that_asked_for_and_the_mean_is_kept(rate: float) -> None:
    found = hashed_dropout(torch.ones(SHAPE), rate, torch.tensor(7, dtype=torch.int32))
    spread = (rate * (1 - rate) / found.numel()) ** 0.5
    assert float((found == 0).double().mean()) == pytest.approx(rate, abs=5 * spread)
    assert float(found.double().mean()) == pytest.approx(1, abs=5 * spread / (1 - rate))
    for part in (found[:, 0], found[0], found[::2], found[:, ::64]):  # no column, row or stride is another
        own = (rate * (1 - rate) / part.numel()) ** 0.5
        assert float((part == 0).double().mean()) == pytest.approx(rate, abs=5 * own)


def test_neighbours_rows_and_seeds_are_independent() -> None:
    one = mask(1)
    least = 5 / one.numel() ** 0.5
    for other in (one.roll(1, 1), one.roll(2, 1), one.roll(1, 0), one.roll(64, 1), mask(2), mask(3), mask(1 << 20)):
        assert abs(correlation(one, other)) < least


def test_no_seed_permutes_the_mask_of_another() -> None:
    """As it would if it were only added to the place, or xored with it."""
    places = torch.arange(1 << 16, dtype=torch.int32)
    one, two = (hashed(places, torch.tensor(seed, dtype=torch.int32)) for seed in (5, 6))
    assert len(set(one.tolist()) & set(two.tolist())) < 16  # by chance one


def test_every_bit_is_even() -> None:
    bits = hashed(torch.arange(1 << 20, dtype=torch.int32), torch.tensor(-9, dtype=torch.int32))
    for place in range(16, 32):  # those that a rate looks at
        assert float(((bits >> place) & 1).double().mean()) == pytest.approx(0.5, abs=0.003)


def test_the_gradient_passes_the_same_mask() -> None:
    values = torch.ones(8, 8, requires_grad=True)
    found = hashed_dropout(values, 0.4, torch.tensor(3, dtype=torch.int32))
    found.sum().backward()
    assert values.grad is not None
    assert torch.equal(values.grad, found.detach())


def test_seeds_follow_the_generator() -> None:
    found = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        found.append(draw_seeds(7, torch.device("cpu")))
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])
