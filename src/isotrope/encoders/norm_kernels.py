"""Bias, dropout, residual and norm in one kernel on a GPU, forward and backward.

    forward    u = M ∘ (x + c) / (1 − p) + s,   y = w ∘ û + b,   û = (u − mean u) / √(var u + ε)
    backward   du = (g ∘ w − mean(g ∘ w) − û mean(g ∘ w ∘ û)) / √(var u + ε),   ds = du,   dx = M ∘ du / (1 − p)
               dw = Σ g ∘ û,   db = Σ g,   dc = Σ dx,   sums over all tokens

M is the mask of ``hashed_dropout``, computed again in the backward; nothing is kept but x, s, mean and deviation. A
compiler reads every gradient two or three times: for it sums over a row and sums over all rows are separate kernels.
Here a program walks through many rows and keeps its part of the sums. Imported where triton is installed.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from isotrope.encoders.hashed_dropout import LEVELS, LOWEST, hashed

ROWS = 4  # that a program reads at a time
PROGRAMS = 396  # of the backward: three for each multiprocessor of a large GPU, as registers allow
Numbers = tuple[Tensor, Tensor, Tensor]


@triton.jit
def _kept(place, seed, rate, lowest):  # type: ignore[no-untyped-def]
    own = tl.load(seed).to(tl.uint32, bitcast=True)
    bits = (place.to(tl.uint32) ^ own) * 0x1E3779B1 + own
    bits = (bits ^ (bits >> 16)) * 0x21F0AAAD + own
    bits = (bits ^ (bits >> 15)) * 0x735A2D97
    return tl.where(bits.to(tl.int32, bitcast=True) >= lowest, 1.0 / (1.0 - rate), 0.0)


@triton.jit  # type: ignore[untyped-decorator]
def _normed(  # type: ignore[no-untyped-def]
    change, before, states, weight, bias, seed, out, means, scales, count, rate, lowest, epsilon,
    width: tl.constexpr, block: tl.constexpr, rows: tl.constexpr, drops: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    column = tl.arange(0, block)
    inside = (row < count)[:, None] & (column < width)[None, :]
    place = row.to(tl.int64)[:, None] * width + column[None, :]
    total = tl.load(change + place, mask=inside, other=0.0).to(tl.float32)
    total += tl.load(before + column, mask=column < width, other=0.0).to(tl.float32)[None, :]
    if drops:
        total *= _kept(row[:, None] * width + column[None, :], seed, rate, lowest)
    total += tl.load(states + place, mask=inside, other=0.0).to(tl.float32)
    total = tl.where(inside, total, 0.0)
    mean = tl.sum(total, 1) / width
    apart = tl.where(inside, total - mean[:, None], 0.0)
    scale = 1.0 / tl.sqrt(tl.sum(apart * apart, 1) / width + epsilon)
    factor = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
    shift = tl.load(bias + column, mask=column < width, other=0.0).to(tl.float32)
    found = apart * scale[:, None] * factor[None, :] + shift[None, :]
    tl.store(out + place, found.to(out.dtype.element_ty), mask=inside)
    tl.store(means + row, mean, mask=row < count)
    tl.store(scales + row, scale, mask=row < count)


@triton.jit  # type: ignore[untyped-decorator]
def _normed_backward(  # type: ignore[no-untyped-def]
    gradient, change, before, states, weight, means, scales, seed, of_change, of_states, sums,
    turns, count, rate, lowest, width: tl.constexpr, block: tl.constexpr, rows: tl.constexpr, drops: tl.constexpr,
):  # fmt: skip
    column = tl.arange(0, block)
    factor = tl.load(weight + column, mask=column < width, other=0.0).to(tl.float32)
    shift = tl.load(before + column, mask=column < width, other=0.0).to(tl.float32)
    of_before = tl.zeros((rows, block), tl.float32)
    of_weight = tl.zeros((rows, block), tl.float32)
    of_bias = tl.zeros((rows, block), tl.float32)
    for turn in range(turns):
        row = (turn * tl.num_programs(0) + tl.program_id(0)) * rows + tl.arange(0, rows)
        inside = (row < count)[:, None] & (column < width)[None, :]
        place = row.to(tl.int64)[:, None] * width + column[None, :]
        total = tl.load(change + place, mask=inside, other=0.0).to(tl.float32) + shift[None, :]
        kept = tl.full((rows, block), 1.0, tl.float32)
        if drops:
            kept = _kept(row[:, None] * width + column[None, :], seed, rate, lowest)
        total = total * kept + tl.load(states + place, mask=inside, other=0.0).to(tl.float32)
        mean = tl.load(means + row, mask=row < count, other=0.0)
        scale = tl.load(scales + row, mask=row < count, other=0.0)
        normed = tl.where(inside, (total - mean[:, None]) * scale[:, None], 0.0)
        upper = tl.load(gradient + place, mask=inside, other=0.0).to(tl.float32)
        inner = upper * factor[None, :]
        own, along = tl.sum(inner, 1) / width, tl.sum(inner * normed, 1) / width
        found = (inner - own[:, None] - normed * along[:, None]) * scale[:, None]
        dropped = tl.where(inside, found * kept, 0.0).to(of_change.dtype.element_ty)
        tl.store(of_states + place, found.to(of_states.dtype.element_ty), mask=inside)
        tl.store(of_change + place, dropped, mask=inside)
        of_before += dropped.to(tl.float32)
        of_weight += upper * normed
        of_bias += upper
    target = sums + tl.program_id(0) * (3 * width) + column
    tl.store(target, tl.sum(of_before, 0), mask=column < width)
    tl.store(target + width, tl.sum(of_weight, 0), mask=column < width)
    tl.store(target + 2 * width, tl.sum(of_bias, 0), mask=column < width)


def _options(states: Tensor, rate: float) -> dict[str, Any]:
    width = states.shape[1]
    return {"width": width, "block": triton.next_power_of_2(width), "rows": ROWS, "drops": rate > 0, "num_warps": 4}


def _lowest(rate: float) -> int:
    return LOWEST + round(rate * LEVELS)


@torch.library.custom_op("isotrope::dropped_norm", mutates_args=())
def dropped_norm(
    change: Tensor, before: Tensor, states: Tensor, weight: Tensor, bias: Tensor, seed: Tensor, rate: float,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(y, mean, 1 / deviation) of [tokens, d]. ``before``, the bias c, and the norm's weights are [d]; ``seed`` is that
    of ``hashed_dropout``, hashed."""
    count = len(states)
    out = torch.empty_like(states)
    means, scales = (states.new_empty(count, dtype=torch.float32) for _ in range(2))
    numbers = (count, rate, _lowest(rate), epsilon)
    grid = (triton.cdiv(count, ROWS),)
    _normed[grid](
        change, before, states, weight, bias, seed, out, means, scales, *numbers, **_options(states, rate)
    )  # fmt: skip
    return out, means, scales


@torch.library.custom_op("isotrope::dropped_norm_backward", mutates_args=())
def dropped_norm_backward(
    gradient: Tensor, change: Tensor, before: Tensor, states: Tensor, weight: Tensor, means: Tensor, scales: Tensor,
    seed: Tensor, rate: float,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """(dx, ds, the sums [programs, 3, d] of dc, dw and db)."""
    of_change, of_states = torch.empty_like(change), torch.empty_like(states)
    sums = states.new_empty(PROGRAMS, 3, states.shape[1], dtype=torch.float32)
    found = (of_change, of_states, sums)
    numbers = (triton.cdiv(len(states), ROWS * PROGRAMS), len(states), rate, _lowest(rate))
    _normed_backward[(PROGRAMS,)](
        gradient, change, before, states, weight, means, scales, seed, *found, *numbers, **_options(states, rate)
    )  # fmt: skip
    return found


@dropped_norm.register_fake
def _(change, before, states, weight, bias, seed, rate, epsilon) -> Numbers:  # type: ignore[no-untyped-def]
    rows = states.shape[0]  # its len would fix the number
    return torch.empty_like(states), *(states.new_empty(rows, dtype=torch.float32) for _ in range(2))


@dropped_norm_backward.register_fake
def _(gradient, change, before, states, weight, means, scales, seed, rate) -> Numbers:  # type: ignore[no-untyped-def]
    sums = states.new_empty(PROGRAMS, 3, states.shape[1], dtype=torch.float32)
    return torch.empty_like(change), torch.empty_like(states), sums


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Numbers) -> None:
    change, before, states, weight, bias, seed, ctx.rate, _ = inputs
    ctx.other = bias.dtype
    ctx.save_for_backward(change, before, states, weight, *output[1:], seed)


def _of_output(ctx: Any, gradient: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
    _, before, _, weight, *_ = ctx.saved_tensors
    of_change, of_states, sums = dropped_norm_backward(gradient.contiguous(), *ctx.saved_tensors, ctx.rate)
    of_before, of_weight, of_bias = sums.sum(0).unbind(0)
    norm = of_weight.to(weight.dtype), of_bias.to(ctx.other)
    return of_change, of_before.to(before.dtype), of_states, *norm, None, None, None


dropped_norm.register_autograd(_of_output, setup_context=_keep)


def normed_sum(
    change: Tensor,
    before: Tensor,
    states: Tensor,
    norm: tuple[Tensor, Tensor],
    rate: float,
    epsilon: float,
    seed: Tensor,
) -> Tensor:
    """y, with the mask that ``hashed_dropout`` has for the same seed."""
    found: Tensor = dropped_norm(change, before, states, *norm, hashed(seed, seed).view(1), rate, epsilon)[0]
    return found
