"""What a layer of BERT's family computes for rows without padding, as functions that a compiler can take."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from isotrope.encoders.hashed_dropout import hashed_dropout
from isotrope.encoders.row_attention import HALVES, has_triton, row_attention

Weights = tuple[Tensor, ...]
Numbers = tuple[int, tuple[float, float, float], tuple[float, float], str]  # heads, dropout, epsilons, GELU's form


def embed_forward(
    ids: Tensor,
    positions: Tensor,
    segments: Tensor | None,
    first_position: int,
    weights: Weights,
    epsilon: float,
    rate: float,
    dtype: torch.dtype,
    seeds: Tensor | None = None,
) -> Tensor:
    """The sum of three embeddings, normed."""
    words, places, kinds, scale, bias = weights
    if segments is None:
        typed = kinds[0]
    elif len(kinds) == 2:  # its gradient is two sums; that of a table would add all tokens to two rows, one by one
        typed = torch.where(segments.unsqueeze(1) == 0, kinds[0], kinds[1])
    else:
        typed = functional.embedding(segments, kinds)
    total = functional.embedding(ids, words) + typed + functional.embedding(positions + first_position, places)
    return _dropped(functional.layer_norm(total, scale.shape, scale, bias, epsilon), rate, seeds, 0).to(dtype)


def layer_forward(
    states: Tensor,
    weights: Weights,
    borders: Tensor,
    longest: int,
    heads: int,
    rates: tuple[float, float, float],
    epsilons: tuple[float, float],
    approximate: str,
    seeds: Tensor | None = None,
) -> Tensor:
    """One layer of all rows. ``rates`` are those of dropout, 0 where nothing is trained; it is hashed from ``seeds``,
    one for each rate, or else drawn by torch."""
    numbers = (heads, rates, epsilons, approximate, seeds)
    return settle(mix(states, weights, borders, longest, *numbers), states, weights, *numbers)


def mix(
    states: Tensor,
    weights: Weights,
    borders: Tensor,
    longest: int,
    heads: int,
    rates: tuple[float, float, float],
    epsilons: tuple[float, float],
    approximate: str,
    seeds: Tensor | None = None,
) -> Tensor:
    """The first part of a layer, in which tokens see each other: attention, [tokens, d]."""
    query, query_bias, key, key_bias, value, value_bias, *_ = weights
    # One product in place of three: the weights are small beside the states.
    qkv = _linear(states, torch.cat([query, key, value]), torch.cat([query_bias, key_bias, value_bias]))
    seed = None if seeds is None else seeds[:1]
    return row_attention(qkv.unflatten(-1, (3, heads, -1)), borders, longest, rates[0], seed).flatten(-2)


def settle(
    mixed: Tensor,
    states: Tensor,
    weights: Weights,
    heads: int,
    rates: tuple[float, float, float],
    epsilons: tuple[float, float],
    approximate: str,
    seeds: Tensor | None = None,
) -> Tensor:
    """The rest of it, token by token."""
    joined, joined_bias, first, first_bias, wide, wide_bias, narrow, narrow_bias, second, second_bias = weights[6:]
    states = _added(mixed, (joined, joined_bias), states, (first, first_bias), rates[1], epsilons[0], seeds, 1)
    inner = functional.gelu(_linear(states, wide, wide_bias), approximate=approximate)
    return _added(inner, (narrow, narrow_bias), states, (second, second_bias), rates[2], epsilons[1], seeds, 2)


def _added(
    change: Tensor,
    linear: tuple[Tensor, Tensor],
    states: Tensor,
    norm: tuple[Tensor, Tensor],
    rate: float,
    epsilon: float,
    seeds: Tensor | None,
    which: int,
) -> Tensor:
    """LN(dropout(W x + b) + states)."""
    weight, bias = linear
    if seeds is not None and takes_kernel(states):
        from isotrope.encoders.norm_kernels import normed_sum

        change = functional.linear(change, weight.to(change.dtype))
        return normed_sum(change, bias, states, norm, rate, epsilon, seeds[which])
    return _normed(_dropped(_linear(change, weight, bias), rate, seeds, which), states, *norm, epsilon)


def takes_kernel(states: Tensor) -> bool:
    """Whether bias, dropout, residual and norm can be one kernel."""
    return states.is_cuda and states.dtype in HALVES and has_triton()


def _dropped(values: Tensor, rate: float, seeds: Tensor | None, which: int) -> Tensor:
    if seeds is None or rate == 0:
        return functional.dropout(values, rate)
    return hashed_dropout(values, rate, seeds[which])


def _linear(states: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return functional.linear(states, weight.to(states.dtype), bias.to(states.dtype))


def _normed(change: Tensor, states: Tensor, weight: Tensor, bias: Tensor, epsilon: float) -> Tensor:
    total = change.to(weight.dtype) + states.to(weight.dtype)
    return functional.layer_norm(total, weight.shape, weight, bias, epsilon).to(states.dtype)
