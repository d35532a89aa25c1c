"""Bias, dropout, residual and norm in one kernel, against the same in plain operators.

On a GPU; elsewhere with the interpreter of an installed triton, where TRITON_INTERPRET is 1. That of triton 3.6 needs a
numpy before 2.4.
"""

from __future__ import annotations

import importlib.util
import os

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from isotrope.encoders.hashed_dropout import hashed_dropout

ON_GPU = torch.cuda.is_available()
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None or not (ON_GPU or os.environ.get("TRITON_INTERPRET") == "1"),
    reason="needs triton, and a GPU or its interpreter",
)
DEVICE = torch.device("cuda" if ON_GPU else "cpu")
EPSILON = 1e-12


def given(tokens: int, width: int) -> tuple[Tensor, ...]:
    """The change, its bias, the states, the norm's weight and bias."""
    torch.manual_seed(tokens)
    shapes = ((tokens, width), (width,), (tokens, width), (width,), (width,))
    return tuple(torch.randn(shape).to(DEVICE).requires_grad_() for shape in shapes)


def plain(tensors: tuple[Tensor, ...], rate: float, seed: Tensor) -> Tensor:
    change, before, states, weight, bias = tensors
    dropped = hashed_dropout(change + before, rate, seed) if rate else change + before
    return functional.layer_norm(dropped + states, weight.shape, weight, bias, EPSILON)


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5])
@pytest.mark.parametrize(("tokens", "width"), [(5, 16), (37, 24)])  # neither fills its tiles
def test_values_and_gradients_are_those_of_plain_operators(tokens: int, width: int, rate: float) -> None:
    from isotrope.encoders.norm_kernels import normed_sum

    seed = torch.tensor(1234567, dtype=torch.int32, device=DEVICE)
    ours, others = given(tokens, width), given(tokens, width)
    change, before, states, weight, bias = ours
    found, expected = normed_sum(change, before, states, (weight, bias), rate, EPSILON, seed), plain(others, rate, seed)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    upper = torch.randn_like(expected)
    (found * upper).sum().backward()
    (expected * upper).sum().backward()
    for one, two in zip(ours, others, strict=True):
        torch.testing.assert_close(one.grad, two.grad, atol=1e-4, rtol=1e-3)
