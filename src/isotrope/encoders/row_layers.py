"""The layers of BERT's family over rows without padding: [tokens, d] → [tokens, d]."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from isotrope.encoders.hashed_dropout import draw_seeds, hashed_dropout
from isotrope.encoders.row_attention import HALVES, has_triton, row_attention

VARIANTS = 128  # of a compiled function: rates, widths and lengths that it met
Weights = tuple[Tensor, ...]
Numbers = tuple[int, tuple[float, float, float], tuple[float, float], str]  # heads, dropout, epsilons, GELU's form


class Inputs(NamedTuple):
    """Tokens of all rows, one behind another. Those behind the last border belong to no row."""

    ids: Tensor  # [tokens]
    positions: Tensor  # [tokens], in their row
    borders: Tensor  # [rows + 1], int32
    segments: Tensor | None  # [tokens]
    longest: int  # at least the length of every row


class RowLayers(nn.Module):
    """The modules of a backbone, in the order in which its forward reads them."""

    def __init__(
        self, embeddings: Any, project: nn.Module | None, layers: nn.ModuleList, heads: int, approximate: str
    ) -> None:
        super().__init__()
        self.embeddings, self.project, self.layer = embeddings, project, layers
        self.heads, self.approximate = heads, approximate
        first: Any = layers[0]
        self.head_width: int = first.attention.self.query.out_features // heads
        table = embeddings.position_embeddings
        # RoBERTa and its kin start counting behind the padding index.
        self.first_position = 0 if table.padding_idx is None else table.padding_idx + 1

    def forward(
        self, inputs: Inputs, dtype: torch.dtype, compiled: bool = False, places: Tensor | None = None
    ) -> Tensor:
        """H_L alone, of all tokens or at some places."""
        if places is not None:
            return self.at(inputs, places, dtype, compiled)
        *_, last = self.walk(inputs, dtype, compiled)
        return last

    def walk(self, inputs: Inputs, dtype: torch.dtype, compiled: bool = False) -> Iterator[Tensor]:
        """H_0 … H_L, kept in ``dtype``. Compiled, dropout in the layers is hashed."""
        with torch.autocast(inputs.ids.device.type, enabled=False):
            states = self.embedded(inputs, dtype)
        yield states
        forward = compiled_layer() if compiled else layer_forward
        count = len(self.layer)
        seeds = draw_seeds(count, inputs.ids.device).unbind() if compiled else (None,) * count
        for layer, seed in zip(self.layer, seeds, strict=True):
            numbers = (*self.numbers(layer), seed)
            with torch.autocast(inputs.ids.device.type, enabled=False):
                states = forward(states, weights_of(layer), inputs.borders, inputs.longest, *numbers)
            yield states

    def at(self, inputs: Inputs, places: Tensor, dtype: torch.dtype, compiled: bool = False) -> Tensor:
        """H_L at some places, none twice, [places, d]: behind its attention the last layer computes nothing else.

        Compiled, the parts of a layer are graphs for one number of tokens, or for any where rows are not all full, and
        dropout is hashed.
        """
        count, borders = len(self.layer), inputs.borders
        seeds = draw_seeds(count + 1, places.device).unbind() if compiled else (None,) * (count + 1)
        parts = compiled_parts() if compiled else Parts()
        full = len(inputs.ids) == (len(borders) - 1) * inputs.longest
        size = _any_number if compiled and not full else _same_number
        with torch.autocast(places.device.type, enabled=False):
            for part in (inputs.ids, inputs.positions, inputs.segments):
                if part is not None:
                    size(part)
            states = self.embedded(inputs, dtype, parts.embed, seeds[count])
            for number, layer in enumerate(self.layer):
                weights, numbers = weights_of(layer), (*self.numbers(layer), seeds[number])
                mixed = parts.mix(size(states), weights, borders, inputs.longest, *numbers)
                if number == count - 1:
                    mixed, states = picked(mixed, places), picked(states, places)
                states = parts.settle(size(mixed), size(states), weights, *numbers)
            return states

    def numbers(self, layer: Any) -> Numbers:
        behind, out = layer.attention.output, layer.output
        rates = _rate(layer.attention.self.dropout), _rate(behind.dropout), _rate(out.dropout)
        return self.heads, rates, (behind.LayerNorm.eps, out.LayerNorm.eps), self.approximate

    def embedded(
        self,
        inputs: Inputs,
        dtype: torch.dtype,
        embed: Callable[..., Tensor] | None = None,
        seeds: Tensor | None = None,
    ) -> Tensor:
        """H_0."""
        parts, project = self.embeddings, self.project
        norm = parts.LayerNorm
        tables = (parts.word_embeddings.weight, parts.position_embeddings.weight, parts.token_type_embeddings.weight)
        weights = (*tables, norm.weight, norm.bias)
        kept = dtype if project is None else norm.weight.dtype
        rest = (self.first_position, weights, norm.eps, _rate(parts.dropout), kept, seeds)
        states = (embed or embed_forward)(inputs.ids, inputs.positions, inputs.segments, *rest)
        return states if project is None else project(states).to(dtype)


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


@cache
def can_compile() -> bool:
    """Whether torch's compiler has what it needs: triton, and a compiler of C."""
    return importlib.util.find_spec("triton") is not None and any(map(shutil.which, ("cc", "gcc", "clang")))


@cache
def compiled_layer() -> Callable[..., Tensor]:
    """One graph for all layers, and for every number of tokens."""
    _allow_variants()
    return torch.compile(layer_forward, dynamic=True)


def _allow_variants() -> None:
    """A process that trains many models, as a comparison does, needs more graphs of one function than torch keeps; past
    its limit it goes on uncompiled, and says nothing."""
    from torch._dynamo import config

    config.recompile_limit = max(config.recompile_limit, VARIANTS)
    config.accumulated_recompile_limit = max(config.accumulated_recompile_limit, 8 * VARIANTS)


@dataclass(frozen=True)
class Parts:
    """The functions that a forward consists of."""

    embed: Callable[..., Tensor] = embed_forward
    mix: Callable[..., Tensor] = mix
    settle: Callable[..., Tensor] = settle


@cache
def compiled_parts() -> Parts:
    """Each for the sizes and rates that it is called with; one graph serves all layers.

    Nothing is lost between the parts: attention is a kernel of its own, which no compiler would fuse with others.
    """
    _allow_variants()
    return Parts(*(torch.compile(part, dynamic=False) for part in (embed_forward, mix, settle)))


def _any_number(rows: Tensor) -> Tensor:
    """The same tensor, with a note for the compiler: there may be another number of rows next time."""
    torch._dynamo.maybe_mark_dynamic(rows, 0)
    return rows


def _same_number(rows: Tensor) -> Tensor:
    return rows


def picked(rows: Tensor, places: Tensor) -> Tensor:
    """Rows at places, none twice."""
    found: Tensor = Picked.apply(rows, places)  # type: ignore[no-untyped-call]
    return found


class Picked(torch.autograd.Function):
    """Torch would add up the gradients as if places could meet, which takes a sort."""

    @staticmethod
    def forward(ctx: Any, rows: Tensor, places: Tensor) -> Tensor:
        ctx.save_for_backward(places)
        ctx.count = len(rows)
        return rows.index_select(0, places)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return gradient.new_zeros(ctx.count, gradient.shape[1]).index_copy_(0, places, gradient), None


def weights_of(layer: Any) -> Weights:
    attention, behind = layer.attention.self, layer.attention.output
    linear = (attention.query, attention.key, attention.value, behind.dense)
    modules = (*linear, behind.LayerNorm, layer.intermediate.dense, layer.output.dense, layer.output.LayerNorm)
    return tuple(tensor for module in modules for tensor in (module.weight, module.bias))


def _rate(dropout: nn.Dropout) -> float:
    return dropout.p if dropout.training else 0.0
