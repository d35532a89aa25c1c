"""Dropout on a CPU with 16 random bits for each value, in place of torch's Bernoulli draw, which costs half a step.

    y = x · m / (1 − q),   m ~ Bernoulli(1 − q),   q = round(2¹⁶ p) / 2¹⁶

The rate is exact to 2⁻¹⁷, and the scale is that of the rate that is really drawn, so y is x in expectation. The bits
are those of torch's default generator: the same seed gives the same masks, and a forward that is repeated under the
same seed repeats them. It holds for every ``dropout`` inside the block, and for the dropout inside attention, whose CPU
kernel has none: there torch falls back to plain products, as this does. Other devices are left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

LEVELS = 1 << 16
PRECISIONS = (torch.float32, torch.bfloat16)
LOWEST = -(1 << 15)  # of a signed number of 16 bits


def keep_mask(shape: torch.Size, rate: float, dtype: torch.dtype = torch.float32) -> Tensor:
    """0 where a value is dropped, 1 / (1 − q) where it is kept, drawn from torch's default generator."""
    dropped = round(rate * LEVELS)
    if dropped >= LEVELS:
        return torch.zeros(shape, dtype=dtype)
    count = shape.numel()
    bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(1 << 63), None)
    mask = torch.empty(count, dtype=dtype)
    torch.ge(bits.view(torch.int16)[:count], LOWEST + dropped, out=mask)
    return mask.mul_(LEVELS / (LEVELS - dropped)).view(shape)


def dropped(values: Tensor, rate: float) -> Tensor:
    """The values under a mask; its gradient passes the same mask."""
    return values * keep_mask(values.shape, rate, values.dtype)


class BitDropout(TorchFunctionMode):
    """Inside the block dropout on the CPU draws its masks by ``keep_mask``. Holds for this thread alone."""

    def __torch_function__(
        self,
        function: Callable[..., Any],
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        named = dict(kwargs or {})
        if function is functional.dropout:
            return _dropout(*args, **named)
        if function is functional.scaled_dot_product_attention and named.get("dropout_p", 0.0) > 0.0:
            return _attention(*args, **named)
        return function(*args, **named)


def _dropout(values: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    if not _ours(values) or not training or p == 0.0 or not 0.0 <= p <= 1.0:
        return functional.dropout(values, p, training, inplace)
    return values.mul_(keep_mask(values.shape, p, values.dtype)) if inplace else dropped(values, p)


def _attention(
    query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None, dropout_p: float = 0.0, **named: Any
) -> Tensor:
    if not _ours(query) or named.get("is_causal") or named.get("enable_gqa"):
        return functional.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, **named)
    scale = named.get("scale") or query.shape[-1] ** -0.5
    scores = (query * scale) @ key.transpose(-1, -2)
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores = scores.masked_fill(~attn_mask, float("-inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask
    # A float32 mask makes scores of half precision float32.
    return dropped(scores.softmax(dim=-1).to(value.dtype), dropout_p) @ value


def _ours(values: Tensor) -> bool:
    return values.device.type == "cpu" and values.dtype in PRECISIONS
