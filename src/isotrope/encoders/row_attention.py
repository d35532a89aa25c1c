"""Attention of tokens to those of their own row, rows one behind another without padding.

    o_i = Σ_j softmax_j(q_i · k_j / √d) v_j,    j in the row of i

On a GPU, in half precision: rows of up to 128 tokens by a kernel of our own (short_row_kernels.py), longer ones by
torch's flash attention; in float32, and on older GPUs, by its memory-efficient one. Torch's two have no public name
that takes rows of different lengths and dropout, hence the operators of ``torch.ops.aten``. Elsewhere each row is
computed by itself, which is slow and exact: tests compare with it.
"""

from __future__ import annotations

import importlib.util
from functools import cache
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

OPERATORS: Any = torch.ops.aten
NO_MASK = 0
SHORT = 128  # tokens
HALVES = (torch.float16, torch.bfloat16)


def fits_heads(width: int) -> bool:
    """Whether the kernels take heads of this width."""
    return width % 8 == 0 and width <= 256


def is_short(longest: int, width: int, dtype: torch.dtype) -> bool:
    """Whether the kernel for short rows takes them."""
    fits = longest <= SHORT and width in (16, 32, 64, 128) and dtype in HALVES
    return fits and has_triton()


@cache
def has_flash(device: torch.device) -> bool:
    """Whether the GPU has what flash attention needs: Ampere's generation or a later one."""
    return torch.cuda.get_device_capability(device) >= (8, 0)


@cache
def has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None


def row_attention(qkv: Tensor, borders: Tensor, longest: int, rate: float, seed: Tensor | None = None) -> Tensor:
    """[tokens, 3, heads, d] → [tokens, heads, d]. ``borders`` [rows + 1] in int32; ``rate`` of dropout on weights.

    The kernel for short rows takes its mask from ``seed``, [1] in int32, where it is given.
    """
    if not qkv.is_cuda:
        return _row_by_row(qkv, borders, rate)
    if is_short(longest, qkv.shape[-1], qkv.dtype):
        from isotrope.encoders.short_row_kernels import short_rows

        if seed is None:
            seed = torch.randint(1 << 31, (1,), device=qkv.device).int() if rate > 0 else borders
        mixed: Tensor = short_rows(qkv, borders, seed, longest, rate)
        return mixed
    query, key, value = qkv.unbind(1)
    if qkv.dtype in HALVES and has_flash(qkv.device):
        found: Tensor = OPERATORS._flash_attention_forward(
            query, key, value, borders, borders, longest, longest, rate, False, False
        )[0]
        return found
    whole: Tensor = OPERATORS._efficient_attention_forward(
        query.unsqueeze(0),
        key.unsqueeze(0),
        value.unsqueeze(0),
        None,
        borders,
        borders,
        longest,
        longest,
        rate,
        NO_MASK,
        torch.is_grad_enabled(),
    )[0]
    return whole.squeeze(0)


def _row_by_row(qkv: Tensor, borders: Tensor, rate: float) -> Tensor:
    found = []
    for start, end in pairwise(borders.tolist()):
        if end > start:
            query, key, value = qkv[start:end].transpose(0, 2).transpose(0, 1).unsqueeze(1)  # [3, 1, heads, tokens, d]
            row = functional.scaled_dot_product_attention(query, key, value, dropout_p=rate)
            found.append(row.squeeze(0).transpose(0, 1))
    return torch.cat(found) if found else qkv[:, 0]
