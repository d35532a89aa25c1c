"""The layers of BERT's family over rows without padding: [tokens, d] → [tokens, d]."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from isotrope.encoders.compiled_layers import Parts, any_number, compiled_layer, compiled_parts, same_number
from isotrope.encoders.hashed_dropout import draw_seeds
from isotrope.encoders.layer_parts import Numbers, Weights, embed_forward, layer_forward


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
        size = any_number if compiled and not full else same_number
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
