"""Attention of short rows on a GPU, one program for each row and head: the whole score matrix fits into registers.

    forward    S = Q Kᵀ / √d,  P = softmax(S),  O = (P ∘ M) V,     M: the dropout mask, hashed from (seed, row, head)
    backward   dV = (P ∘ M)ᵀ dO,  dP = (dO Vᵀ) ∘ M,  dS = P ∘ (dP − Σ_j P dP),  dQ = dS K / √d,  dK = dSᵀ Q / √d

Kernels for long sequences cut them into tiles of 64 or 128 and keep sums between them; a sentence of thirty tokens
fills a quarter of one. Here scores are computed again in the backward, nothing is kept but Q, K and V, and the three
gradients are written where the gradient of their common product wants them. Imported where triton is installed.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

LONGEST = 128  # tokens in a row
LEVELS = 1 << 24  # of a hash that is held against the rate of dropout


@triton.jit  # type: ignore[untyped-decorator]
def _scores(qkv, base, inside, columns, scale, heads: tl.constexpr, width: tl.constexpr):  # type: ignore[no-untyped-def]
    places = qkv + base[:, None] + columns[None, :]
    query = tl.load(places, mask=inside[:, None], other=0.0)
    key = tl.load(places + heads * width, mask=inside[:, None], other=0.0)
    value = tl.load(places + 2 * heads * width, mask=inside[:, None], other=0.0)
    scores = tl.dot(query, tl.trans(key)) * scale
    scores = tl.where(inside[None, :], scores, -1e30)
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    return query, key, value, weights / tl.sum(weights, 1)[:, None]


@triton.jit
def _mixed(bits):  # type: ignore[no-untyped-def]
    bits = (bits ^ (bits >> 16)) * 0x21F0AAAD
    return (bits ^ (bits >> 15)) * 0x735A2D97


@triton.jit
def _kept(seed, program, tokens, rate, lowest):  # type: ignore[no-untyped-def]
    """A hash of (seed, program, query, key) against the rate; Philox would take longer than the products."""
    own = _mixed(_mixed(tl.load(seed).to(tl.uint32, bitcast=True)) + program.to(tl.uint32))
    query = _mixed(own + tokens.to(tl.uint32))
    key = tokens.to(tl.uint32) * 0x1E3779B1
    bits = _mixed(query[:, None] ^ key[None, :])
    return tl.where((bits >> 8).to(tl.int32) >= lowest, 1.0 / (1.0 - rate), 0.0)


@triton.jit  # type: ignore[untyped-decorator]
def _forward(  # type: ignore[no-untyped-def]
    qkv, out, borders, seed, scale, rate, lowest,
    heads: tl.constexpr, width: tl.constexpr, block: tl.constexpr, drops: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    start = tl.load(borders + row)
    count = tl.load(borders + row + 1) - start
    tokens, columns = tl.arange(0, block), tl.arange(0, width)
    inside = tokens < count
    place = (start + tokens).to(tl.int64)
    base = place * (3 * heads * width) + head * width
    _, _, value, weights = _scores(qkv, base, inside, columns, scale, heads, width)
    if drops:
        weights = weights * _kept(seed, row * heads + head, tokens, rate, lowest)
    mixed = tl.dot(weights.to(value.dtype), value)
    target = out + (place * (heads * width) + head * width)[:, None] + columns[None, :]
    tl.store(target, mixed.to(value.dtype), mask=inside[:, None])


@triton.jit  # type: ignore[untyped-decorator]
def _backward(  # type: ignore[no-untyped-def]
    qkv, gradient, found, borders, seed, scale, rate, lowest,
    heads: tl.constexpr, width: tl.constexpr, block: tl.constexpr, drops: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    start = tl.load(borders + row)
    count = tl.load(borders + row + 1) - start
    tokens, columns = tl.arange(0, block), tl.arange(0, width)
    inside = tokens < count
    place = (start + tokens).to(tl.int64)
    base = place * (3 * heads * width) + head * width
    query, key, value, weights = _scores(qkv, base, inside, columns, scale, heads, width)
    source = gradient + (place * (heads * width) + head * width)[:, None] + columns[None, :]
    upper = tl.load(source, mask=inside[:, None], other=0.0)
    inner = tl.dot(upper, tl.trans(value))
    if drops:
        kept = _kept(seed, row * heads + head, tokens, rate, lowest)
        inner = inner * kept
        of_value = tl.dot(tl.trans((weights * kept).to(value.dtype)), upper)
    else:
        of_value = tl.dot(tl.trans(weights.to(value.dtype)), upper)
    inner = (weights * (inner - tl.sum(weights * inner, 1)[:, None]) * scale).to(value.dtype)
    of_query = tl.dot(inner, key)
    of_key = tl.dot(tl.trans(inner), query)
    target = found + base[:, None] + columns[None, :]
    tl.store(target, of_query.to(value.dtype), mask=inside[:, None])
    tl.store(target + heads * width, of_key.to(value.dtype), mask=inside[:, None])
    tl.store(target + 2 * heads * width, of_value.to(value.dtype), mask=inside[:, None])


def _shape(qkv: Tensor, borders: Tensor, longest: int, rate: float) -> tuple[tuple[int, int], dict[str, Any]]:
    _, _, heads, width = qkv.shape
    block = 64 if longest <= 64 else LONGEST
    options = {"heads": heads, "width": width, "block": block, "drops": rate > 0, "num_warps": 4 if block == 64 else 8}
    return (len(borders) - 1, heads), options


def _is_full(qkv: Tensor, borders: Tensor, longest: int) -> bool:
    """Whether every row has ``longest`` tokens, so that none stands behind the last border."""
    return qkv.shape[0] == (len(borders) - 1) * longest


@torch.library.custom_op("isotrope::short_rows", mutates_args=())
def short_rows(qkv: Tensor, borders: Tensor, seed: Tensor, longest: int, rate: float) -> Tensor:
    """[tokens, 3, heads, d] → [tokens, heads, d]; tokens behind the last border get zeros."""
    shape = (qkv.shape[0], *qkv.shape[2:])
    out = qkv.new_empty(shape) if _is_full(qkv, borders, longest) else qkv.new_zeros(shape)
    grid, options = _shape(qkv, borders, longest, rate)
    _forward[grid](qkv, out, borders, seed, qkv.shape[-1] ** -0.5, rate, round(rate * LEVELS), **options)
    return out


@torch.library.custom_op("isotrope::short_rows_backward", mutates_args=())
def short_rows_backward(
    gradient: Tensor, qkv: Tensor, borders: Tensor, seed: Tensor, longest: int, rate: float
) -> Tensor:
    found = torch.empty_like(qkv) if _is_full(qkv, borders, longest) else torch.zeros_like(qkv)
    grid, options = _shape(qkv, borders, longest, rate)
    _backward[grid](qkv, gradient, found, borders, seed, qkv.shape[-1] ** -0.5, rate, round(rate * LEVELS), **options)
    return found


@short_rows.register_fake
def _(qkv: Tensor, borders: Tensor, seed: Tensor, longest: int, rate: float) -> Tensor:
    return qkv.new_empty(qkv.shape[0], *qkv.shape[2:])


@short_rows_backward.register_fake
def _(gradient: Tensor, qkv: Tensor, borders: Tensor, seed: Tensor, longest: int, rate: float) -> Tensor:
    return torch.empty_like(qkv)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    qkv, borders, seed, ctx.longest, ctx.rate = inputs
    ctx.save_for_backward(qkv, borders, seed)


def _of_output(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
    return short_rows_backward(gradient.contiguous(), *ctx.saved_tensors, ctx.longest, ctx.rate), None, None, None, None


short_rows.register_autograd(_of_output, setup_context=_keep)
