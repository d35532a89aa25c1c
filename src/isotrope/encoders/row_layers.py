"""The layers of BERT's family over rows without padding: [tokens, d] → [tokens, d]."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from isotrope.encoders.row_attention import row_attention

Weights = tuple[Tensor, ...]


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

    def forward(self, inputs: Inputs, dtype: torch.dtype, compiled: bool = False) -> Tensor:
        """H_L alone."""
        *_, last = self.walk(inputs, dtype, compiled)
        return last

    def walk(self, inputs: Inputs, dtype: torch.dtype, compiled: bool = False) -> Iterator[Tensor]:
        """H_0 … H_L, kept in ``dtype``."""
        with torch.autocast(inputs.ids.device.type, enabled=False):
            states = self.embedded(inputs).to(dtype)
        yield states
        forward = compiled_layer() if compiled else layer_forward
        layer: Any
        for layer in self.layer:
            behind, out = layer.attention.output, layer.output
            rates = _rate(layer.attention.self.dropout), _rate(behind.dropout), _rate(out.dropout)
            norms = behind.LayerNorm.eps, out.LayerNorm.eps
            with torch.autocast(inputs.ids.device.type, enabled=False):
                states = forward(
                    states,
                    weights_of(layer),
                    inputs.borders,
                    inputs.longest,
                    self.heads,
                    rates,
                    norms,
                    self.approximate,
                )
            yield states

    def embedded(self, inputs: Inputs) -> Tensor:
        """H_0, in the precision of the weights."""
        parts = self.embeddings
        words = functional.embedding(inputs.ids, parts.word_embeddings.weight)
        positions = functional.embedding(inputs.positions + self.first_position, parts.position_embeddings.weight)
        kinds = parts.token_type_embeddings.weight
        typed = kinds[0] if inputs.segments is None else functional.embedding(inputs.segments, kinds)
        states: Tensor = parts.dropout(parts.LayerNorm(words + typed + positions))
        return states if self.project is None else self.project(states)


def layer_forward(
    states: Tensor,
    weights: Weights,
    borders: Tensor,
    longest: int,
    heads: int,
    rates: tuple[float, float, float],
    epsilons: tuple[float, float],
    approximate: str,
) -> Tensor:
    """One layer of all rows. ``rates`` are those of dropout, 0 where nothing is trained."""
    query, query_bias, key, key_bias, value, value_bias, joined, joined_bias, first, first_bias, *rest = weights
    wide, wide_bias, narrow, narrow_bias, second, second_bias = rest
    # One product in place of three: the weights are small beside the states.
    qkv = _linear(states, torch.cat([query, key, value]), torch.cat([query_bias, key_bias, value_bias]))
    mixed = row_attention(qkv.unflatten(-1, (3, heads, -1)), borders, longest, rates[0]).flatten(-2)
    mixed = functional.dropout(_linear(mixed, joined, joined_bias), rates[1])
    states = _normed(mixed, states, first, first_bias, epsilons[0])
    inner = functional.gelu(_linear(states, wide, wide_bias), approximate=approximate)
    inner = functional.dropout(_linear(inner, narrow, narrow_bias), rates[2])
    return _normed(inner, states, second, second_bias, epsilons[1])


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
    return torch.compile(layer_forward, dynamic=True)


def weights_of(layer: Any) -> Weights:
    attention, behind = layer.attention.self, layer.attention.output
    linear = (attention.query, attention.key, attention.value, behind.dense)
    modules = (*linear, behind.LayerNorm, layer.intermediate.dense, layer.output.dense, layer.output.LayerNorm)
    return tuple(tensor for module in modules for tensor in (module.weight, module.bias))


def _rate(dropout: nn.Dropout) -> float:
    return dropout.p if dropout.training else 0.0
