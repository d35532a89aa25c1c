"""Replaced-token detection: the value by hand, padding, and tokens drawn by given dice."""

from __future__ import annotations

import pytest
import torch

from isotrope.errors import InputError
from isotrope.objectives.detection import detection_losses, sample_tokens

SCORES = torch.tensor([[0.0, 2.0, -2.0]])
REPLACED = torch.tensor([[False, True, False]])
ALL = torch.ones(1, 3, dtype=torch.bool)


def test_golden_value() -> None:
    losses = detection_losses(SCORES, REPLACED, ALL)
    assert losses[0].tolist() == pytest.approx([0.693147, 0.126928, 0.126928], abs=1e-6)  # specs/2, section 9.9
    assert float(losses.mean()) == pytest.approx(0.315668, abs=1e-6)


def test_padding_has_no_loss_and_no_gradient() -> None:
    scores = torch.tensor([[0.0, 2.0, -2.0, 50.0]], requires_grad=True)
    replaced, valid = torch.tensor([[False, True, False, False]]), torch.tensor([[True, True, True, False]])
    losses = detection_losses(scores, replaced, valid)
    losses.sum().backward()
    assert losses[0, 3] == 0
    assert scores.grad is not None
    assert scores.grad[0, 3] == 0
    assert bool((scores.grad[0, :3] != 0).all())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_saturated_scores_stay_finite(dtype: torch.dtype) -> None:
    losses = detection_losses(
        torch.tensor([[1e4, -1e4]], dtype=dtype), torch.tensor([[False, True]]), torch.ones(1, 2, dtype=torch.bool)
    )
    assert losses.dtype == torch.float32
    assert losses.tolist() == [[pytest.approx(1e4, rel=1e-2), pytest.approx(1e4, rel=1e-2)]]


def test_a_token_without_probability_is_never_drawn() -> None:
    scores = torch.tensor([[-torch.inf, 0.0, 0.0, -torch.inf]]).expand(2, 4)
    assert sample_tokens(scores, torch.tensor([0.0, 0.9999999])).tolist() == [1, 2]


def test_dice_fall_where_the_probabilities_say() -> None:
    """Probabilities 0.1, 0.2, 0.7: throws below 0.1 give the first token, below 0.3 the second."""
    dice = torch.tensor([0.0, 0.0999, 0.1001, 0.2999, 0.3001, 0.999999])
    scores = torch.tensor([0.1, 0.2, 0.7]).log().expand(6, 3)
    assert sample_tokens(scores, dice).tolist() == [0, 0, 1, 1, 2, 2]
    throws = torch.rand(20_000, generator=torch.Generator().manual_seed(0))
    shares = torch.bincount(sample_tokens(scores[:1].expand(20_000, 3), throws), minlength=3) / 20_000
    assert shares.tolist() == pytest.approx([0.1, 0.2, 0.7], abs=0.015)


def test_a_cold_generator_gives_its_most_likely_token() -> None:
    scores = torch.randn(50, 9, generator=torch.Generator().manual_seed(1))
    dice = torch.rand(50, generator=torch.Generator().manual_seed(2))
    best = scores.argmax(1)
    assert torch.equal(sample_tokens(scores, dice, 0.0), best)
    assert torch.equal(sample_tokens(scores, dice, 1e-4), best)
    assert not torch.equal(sample_tokens(scores, dice, 1.0), best)


def test_a_throw_of_one_stays_in_the_vocabulary() -> None:
    assert sample_tokens(torch.zeros(1, 5), torch.ones(1)).tolist() == [4]


def test_tensors_that_do_not_fit_get_a_sentence() -> None:
    with pytest.raises(InputError, match="replaced must be"):
        detection_losses(SCORES, REPLACED[:, :2], ALL)
    with pytest.raises(InputError, match="dice must be"):
        sample_tokens(torch.zeros(2, 5), torch.zeros(3))
