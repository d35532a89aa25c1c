"""The kernels for short rows, against rows that are computed one by one.

On a GPU; elsewhere with the interpreter of an installed triton, where TRITON_INTERPRET is 1.
"""

from __future__ import annotations

import importlib.util
import os
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from isotrope.encoders.row_attention import _row_by_row

ON_GPU = torch.cuda.is_available()
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or not (ON_GPU or os.environ.get("TRITON_INTERPRET") == "1"),
    reason="needs triton, and a GPU or its interpreter",
)
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
CLOSE = {"atol": 2e-2, "rtol": 2e-2} if ON_GPU else {"atol": 1e-5, "rtol": 1e-5}
LENGTHS = {64: [5, 31, 32, 33, 64, 1, 17], 128: [5, 64, 65, 128, 100]}
BEHIND, HEADS, WIDTH = 150, 2, 16  # tokens that belong to no row


def rows(longest: int) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(longest)
    borders = torch.tensor([0, *LENGTHS[longest]]).cumsum(0).int()
    dtype = torch.float16 if ON_GPU else torch.float32
    qkv = torch.randn(int(borders[-1]) + BEHIND, 3, HEADS, WIDTH).to(DEVICE, dtype)
    return qkv, borders.to(DEVICE), torch.randn(int(borders[-1]), HEADS, WIDTH).to(DEVICE, dtype)


def ours(qkv: Tensor, borders: Tensor, seed: int, longest: int, rate: float) -> Tensor:
    from isotrope.encoders.short_row_kernels import short_rows

    found: Tensor = short_rows(qkv, borders, torch.tensor([seed], device=DEVICE), longest, rate)
    return found


def masks(qkv: Tensor, borders: Tensor, seed: int, longest: int, rate: float) -> list[Tensor]:
    """What dropout keeps, [heads, tokens, tokens] of each row: the weights are read out by values that are one-hot."""
    spans = list(pairwise(borders.tolist()))
    found = [torch.zeros(HEADS, end - start, end - start, device=DEVICE) for start, end in spans]
    probe = qkv.clone()
    for first in range(0, longest, WIDTH):
        probe[:, 2] = 0
        for start, end in spans:
            for column in range(min(WIDTH, end - start - first)):
                probe[start + first + column, 2, :, column] = 1
        out = ours(probe, borders, seed, longest, rate)
        for (start, end), mask in zip(spans, found, strict=True):
            width = max(min(WIDTH, end - start - first), 0)
            mask[:, :, first : first + width] = (out[start:end, :, :width] > 0).float().transpose(0, 1)
    return found


@pytest.mark.parametrize("longest", [64, 128])
def test_states_and_gradients_are_those_of_single_rows(longest: int) -> None:
    qkv, borders, gradient = rows(longest)
    count = len(gradient)
    one, two = (qkv.clone().requires_grad_() for _ in range(2))
    out = ours(one, borders, 0, longest, 0.0)
    expected = _row_by_row(two, borders, 0.0)
    torch.testing.assert_close(out[:count], expected, **CLOSE)
    (out[:count] * gradient).sum().backward()
    (expected * gradient).sum().backward()
    assert one.grad is not None
    torch.testing.assert_close(one.grad, two.grad, **CLOSE)
    assert not out[count:].any()
    assert not one.grad[count:].any()


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("longest", [64, 128])
def test_dropout_has_its_rate_and_the_backward_knows_what_it_kept(longest: int, rate: float) -> None:
    qkv, borders, gradient = rows(longest)
    kept = masks(qkv, borders, 7, longest, rate)
    share = sum(float(mask.sum()) for mask in kept) / sum(mask.numel() for mask in kept)
    assert abs(share - (1 - rate)) < 0.01
    one, two = (qkv.clone().requires_grad_() for _ in range(2))
    out = ours(one, borders, 7, longest, rate)[: len(gradient)]
    expected = []
    for (start, end), mask in zip(pairwise(borders.tolist()), kept, strict=True):
        query, key, value = two[start:end].float().permute(1, 2, 0, 3)
        weights = torch.softmax(query @ key.transpose(1, 2) / WIDTH**0.5, -1) * mask / (1 - rate)
        expected.append((weights @ value).transpose(0, 1))
    torch.testing.assert_close(out.float(), torch.cat(expected), **CLOSE)
    (out.float() * gradient.float()).sum().backward()
    (torch.cat(expected) * gradient.float()).sum().backward()
    torch.testing.assert_close(one.grad, two.grad, **CLOSE)


def test_masks_follow_the_seed_and_differ_between_rows_heads_and_seeds() -> None:
    torch.manual_seed(0)
    borders = torch.tensor([0, 64, 128], dtype=torch.int32, device=DEVICE)
    qkv = torch.randn(128, 3, HEADS, WIDTH).to(DEVICE, torch.float16 if ON_GPU else torch.float32)
    first, again, other = (torch.stack(masks(qkv, borders, seed, 64, 0.5)) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    drawn = torch.cat([first.flatten(0, 1), other.flatten(0, 1)]).flatten(1)  # a line for each program and seed
    alike = torch.corrcoef(drawn) - torch.eye(len(drawn), device=DEVICE)
    assert float(alike.abs().max()) < 0.07  # 4,096 draws: the spread is 0.016
    square = first[0, 0]
    for one, two in ((square[1:], square[:-1]), (square[:, 1:], square[:, :-1])):
        assert abs(float(torch.corrcoef(torch.stack([one.flatten(), two.flatten()]))[0, 1])) < 0.07
