"""Attention of short rows on a GPU, one program for each row and head: the whole score matrix fits into registers.

    forward    S = Q Kᵀ / √d,  P = softmax(S),  O = (P ∘ M) V,     M: the dropout mask, drawn from (seed, row, head)
    backward   dV = (P ∘ M)ᵀ dO,  dP = (dO Vᵀ) ∘ M,  dS = P ∘ (dP − Σ_j P dP),  dQ = dS K / √d,  dK = dSᵀ Q / √d

Kernels for long sequences cut them into tiles of 64 or 128 and keep sums between them; a sentence of thirty tokens
fills a quarter of one. Here scores are computed again in the backward, nothing is kept but Q, K and V, and the three
gradients are written where the gradient of their common product wants them. A row that fits into half of the longest
takes half of the tile. M is drawn by mixing the bits of a counter with two keys of the program: the usual generator
(Philox) takes a hundred operations for a number, more than all the rest of the kernel. A program more than rows puts
zeros where no row is. Imported where triton is installed.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

LONGEST = 128  # tokens in a row


@triton.jit  # type: ignore[untyped-decorator]
def _places(  # type: ignore[no-untyped-def]
    pointer, start, head, stride: tl.constexpr, width: tl.constexpr, block: tl.constexpr
):
    """Of a row's tokens in one head; numbers inside a row are small, whatever the number of tokens is."""
    tokens, columns = tl.arange(0, block), tl.arange(0, width)
    first = pointer + start.to(tl.int64) * stride + head * width
    return first + (tokens[:, None] * stride + columns[None, :])


@triton.jit  # type: ignore[untyped-decorator]
def _scores(places, inside, scale, heads: tl.constexpr, width: tl.constexpr):  # type: ignore[no-untyped-def]
    query = tl.load(places, mask=inside[:, None], other=0.0)
    key = tl.load(places + heads * width, mask=inside[:, None], other=0.0)
    value = tl.load(places + 2 * heads * width, mask=inside[:, None], other=0.0)
    scores = tl.dot(query, tl.trans(key)) * scale
    scores = tl.where(inside[None, :], scores, -1e30)
    weights = tl.exp(scores - tl.max(scores, 1)[:, None])
    return query, key, value, weights / tl.sum(weights, 1)[:, None]


@triton.jit
def _stirred(bits):  # type: ignore[no-untyped-def]
    bits = (bits ^ (bits >> 16)) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) * 0x846CA68B
    return bits ^ (bits >> 16)


@triton.jit
def _kept(seed, program, tokens, rate):  # type: ignore[no-untyped-def]
    first = _stirred(tl.load(seed).to(tl.uint32) + _stirred(program.to(tl.uint32) + 0x9E3779B9))
    second = _stirred(first + 0x85EBCA6B)
    places = (tokens[:, None] * 128 + tokens[None, :]).to(tl.uint32)  # alike in a tile of any size
    bits = _stirred(places * 0x9E3779B1 + first)
    bits = (bits ^ second) * 0x2C1B3C6D
    drawn = ((bits ^ (bits >> 15)) >> 8).to(tl.float32) * (1.0 / 16777216.0)
    return tl.where(drawn >= rate, 1.0 / (1.0 - rate), 0.0)


@triton.jit  # type: ignore[untyped-decorator]
def _clear(target, start, end, head, stride: tl.constexpr, width: tl.constexpr, block: tl.constexpr):  # type: ignore[no-untyped-def]
    tokens, nothing = tl.arange(0, block), tl.zeros((block, width), dtype=target.dtype.element_ty)
    while start < end:
        places = _places(target, start, head, stride, width, block)
        tl.store(places, nothing, mask=(start + tokens < end)[:, None])
        start += block


@triton.jit  # type: ignore[untyped-decorator]
def _forward_row(  # type: ignore[no-untyped-def]
    qkv, out, seed, row, head, start, count, scale, rate,
    heads: tl.constexpr, width: tl.constexpr, block: tl.constexpr, drops: tl.constexpr,
):  # fmt: skip
    tokens = tl.arange(0, block)
    inside = tokens < count
    places = _places(qkv, start, head, 3 * heads * width, width, block)
    _, _, value, weights = _scores(places, inside, scale, heads, width)
    if drops:
        weights = weights * _kept(seed, row * heads + head, tokens, rate)
    mixed = tl.dot(weights.to(value.dtype), value)
    target = _places(out, start, head, heads * width, width, block)
    tl.store(target, mixed.to(value.dtype), mask=inside[:, None])


@triton.jit  # type: ignore[untyped-decorator]
def _forward(  # type: ignore[no-untyped-def]
    qkv, out, borders, seed, scale, rate, rows, whole,
    heads: tl.constexpr, width: tl.constexpr, block: tl.constexpr, drops: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    start = tl.load(borders + row)
    if row == rows:
        _clear(out, start, whole, head, heads * width, width, block)
    else:
        count = tl.load(borders + row + 1) - start
        if count <= block // 2:
            _forward_row(qkv, out, seed, row, head, start, count, scale, rate, heads, width, block // 2, drops)
        else:
            _forward_row(qkv, out, seed, row, head, start, count, scale, rate, heads, width, block, drops)


@triton.jit  # type: ignore[untyped-decorator]
def _backward_row(  # type: ignore[no-untyped-def]
    qkv, gradient, found, seed, row, head, start, count, scale, rate,
    heads: tl.constexpr, width: tl.constexpr, block: tl.constexpr, drops: tl.constexpr,
):  # fmt: skip
    tokens = tl.arange(0, block)
    inside = tokens < count
    places = _places(qkv, start, head, 3 * heads * width, width, block)
    query, key, value, weights = _scores(places, inside, scale, heads, width)
    upper = tl.load(_places(gradient, start, head, heads * width, width, block), mask=inside[:, None], other=0.0)
    inner = tl.dot(upper, tl.trans(value))
    if drops:
        kept = _kept(seed, row * heads + head, tokens, rate)
        inner = inner * kept
        of_value = tl.dot(tl.trans((weights * kept).to(value.dtype)), upper)
    else:
        of_value = tl.dot(tl.trans(weights.to(value.dtype)), upper)
    inner = (weights * (inner - tl.sum(weights * inner, 1)[:, None]) * scale).to(value.dtype)
    of_query = tl.dot(inner, key)
    of_key = tl.dot(tl.trans(inner), query)
    target = _places(found, start, head, 3 * heads * width, width, block)
    tl.store(target, of_query.to(value.dtype), mask=inside[:, None])
    tl.store(target + heads * width, of_key.to(value.dtype), mask=inside[:, None])
    tl.store(target + 2 * heads * width, of_value.to(value.dtype), mask=inside[:, None])


@triton.jit  # type: ignore[untyped-decorator]
def _backward(  # type: ignore[no-untyped-def]
    qkv, gradient, found, borders, seed, scale, rate, rows, whole,
    heads: tl.constexpr, width: tl.constexpr, block: tl.constexpr, drops: tl.constexpr,
):  # fmt: skip
    row, head = tl.program_id(0), tl.program_id(1)
    start = tl.load(borders + row)
    if row == rows:
        for part in range(3):
            _clear(found, start, whole, part * heads + head, 3 * heads * width, width, block)
    else:
        count = tl.load(borders + row + 1) - start
        if count <= block // 2:
            _backward_row(
                qkv, gradient, found, seed, row, head, start, count, scale, rate, heads, width, block // 2, drops
            )
        else:
            _backward_row(qkv, gradient, found, seed, row, head, start, count, scale, rate, heads, width, block, drops)


def _shape(qkv: Tensor, borders: Tensor, longest: int, rate: float) -> tuple[tuple[int, int], dict[str, Any]]:
    """The grid, with a program more than rows, and the arguments of the kernels."""
    _, _, heads, width = qkv.shape
    block, rows = 64 if longest <= 64 else LONGEST, len(borders) - 1
    sizes = {"scale": width**-0.5, "rate": rate, "rows": rows, "whole": qkv.shape[0]}
    fixed = {"heads": heads, "width": width, "block": block, "drops": rate > 0, "num_warps": 4 if block == 64 else 8}
    return (rows + 1, heads), {**sizes, **fixed}


@torch.library.custom_op("isotrope::short_rows", mutates_args=())
def short_rows(qkv: Tensor, borders: Tensor, seed: Tensor, longest: int, rate: float) -> Tensor:
    """[tokens, 3, heads, d] → [tokens, heads, d]; tokens behind the last border get zeros."""
    out = qkv.new_empty(qkv.shape[0], *qkv.shape[2:])
    grid, options = _shape(qkv, borders, longest, rate)
    _forward[grid](qkv, out, borders, seed, **options)
    return out


@torch.library.custom_op("isotrope::short_rows_backward", mutates_args=())
def short_rows_backward(
    gradient: Tensor, qkv: Tensor, borders: Tensor, seed: Tensor, longest: int, rate: float
) -> Tensor:
    found = torch.empty_like(qkv)
    grid, options = _shape(qkv, borders, longest, rate)
    _backward[grid](qkv, gradient, found, borders, seed, **options)
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
