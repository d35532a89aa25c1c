"""Dropout from random bits: its distribution, its gradient, its seeds."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional

from isotrope.encoders.dropout_masks import LEVELS, BitDropout, keep_mask


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.9])
def test_values_are_dropped_independently_at_the_rate(rate: float) -> None:
    torch.manual_seed(0)
    kept = keep_mask(torch.Size([1001, 1003]), rate) > 0
    count, share = kept.numel(), 1 - round(rate * LEVELS) / LEVELS
    noise = (share * (1 - share) / count) ** 0.5
    assert abs(kept.double().mean().item() - share) < 5 * noise
    centred = kept.double() - share
    # Neighbours share a draw of 64 bits, rows do not; neither may be correlated.
    for lag in (1, 2, 3, 4, 5):
        assert abs((centred[:, lag:] * centred[:, :-lag]).mean().item()) < 6 * share * (1 - share) / count**0.5
    assert abs((centred[1:] * centred[:-1]).mean().item()) < 6 * share * (1 - share) / count**0.5


def test_what_is_kept_is_scaled_to_the_same_mean() -> None:
    torch.manual_seed(1)
    mask = keep_mask(torch.Size([1 << 20]), 0.1)
    assert mask.unique().tolist() == pytest.approx([0, 1 / 0.9], rel=1e-4)
    assert mask.mean().item() == pytest.approx(1, abs=0.002)


@pytest.mark.parametrize(("rate", "value"), [(0.0, 1.0), (1.0, 0.0)])
def test_the_two_ends(rate: float, value: float) -> None:
    with BitDropout():
        assert functional.dropout(torch.ones(7), rate).tolist() == [value] * 7


def test_the_same_seed_draws_the_same_masks_and_another_seed_others() -> None:
    masks = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        with BitDropout():
            masks.append(nn.Dropout(0.3)(torch.ones(5, 99)))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


def test_the_gradient_passes_the_same_mask() -> None:
    values = torch.randn(50, 20, requires_grad=True)
    with BitDropout():
        found = functional.dropout(values, 0.4)
    found.sum().backward()
    assert values.grad is not None
    torch.testing.assert_close(found, values * values.grad)
    assert values.grad.unique().tolist() == pytest.approx([0.0, LEVELS / (LEVELS - round(0.4 * LEVELS))])


def test_evaluation_and_other_precisions_are_left_alone() -> None:
    values = torch.randn(4, 4)
    with BitDropout():
        assert functional.dropout(values, 0.5, training=False) is values
        assert functional.dropout(values.double(), 0.5).dtype == torch.float64


def test_bfloat16_has_the_masks_of_float32() -> None:
    masks = []
    for dtype in (torch.float32, torch.bfloat16):
        torch.manual_seed(7)
        with BitDropout():
            masks.append(functional.dropout(torch.ones(33, 17, dtype=dtype), 0.25))
            query, key, value = (torch.ones(1, 1, 6, 4, dtype=dtype) for _ in range(3))
            barred = torch.zeros(1, 1, 6, 6)  # float32, as the mask of a padded batch is
            states = functional.scaled_dot_product_attention(query, key, value, attn_mask=barred, dropout_p=0.5)
        assert masks[-1].dtype == states.dtype == dtype
        masks.append(states)
    torch.testing.assert_close(masks[0], masks[2].float(), rtol=1e-2, atol=0)
    torch.testing.assert_close(masks[1], masks[3].float(), rtol=1e-2, atol=0)


@pytest.mark.parametrize("form", ["none", "bool", "float"])
def test_attention_is_the_formula_under_the_mask(form: str) -> None:
    torch.manual_seed(2)
    query, key, value = (torch.randn(1, 2, 5, 8) for _ in range(3))
    allowed = torch.ones(1, 1, 5, 5, dtype=torch.bool)
    allowed[..., 4] = form == "none"
    barred = torch.zeros(1, 1, 5, 5).masked_fill(~allowed, float("-inf"))
    given = {"none": None, "bool": allowed, "float": barred}[form]
    torch.manual_seed(3)
    mask = keep_mask(torch.Size([1, 2, 5, 5]), 0.4)
    expected = ((query @ key.mT / 8**0.5 + barred).softmax(dim=-1) * mask) @ value
    torch.manual_seed(3)
    with BitDropout():
        found = functional.scaled_dot_product_attention(query, key, value, attn_mask=given, dropout_p=0.4)
    torch.testing.assert_close(found, expected)


def test_attention_without_dropout_is_torch_s() -> None:
    torch.manual_seed(4)
    query, key, value = (torch.randn(1, 1, 3, 4) for _ in range(3))
    with BitDropout():
        found = functional.scaled_dot_product_attention(query, key, value)
    assert torch.equal(found, functional.scaled_dot_product_attention(query, key, value))
