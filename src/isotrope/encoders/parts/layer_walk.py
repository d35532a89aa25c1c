"""SBERT-WK (Wang and Kuo 2020): a sentence vector from how each token's state moves through the layers, untrained.

A token has a state v_k in each used layer. The weight of layer k comes from its neighbours, at most ``window`` on each
side:

    alignment   a_k = mean_j cos(v_j, p_k),  p_k the projection of v_k onto the span of the neighbours v_j
                weight 1 / (2 n a_k)
    novelty     the share of v_k that is not in that span: ‖v_k − p_k‖ / ‖v_k‖

Both come from the QR decomposition of [neighbours, v_k], n columns. Each is brought to sum 1 over the layers, then
their mean is taken. A token weighs as much as its path bends: the variance over k of cos(v_k, v_{k+1}), brought to sum
1 over the tokens.

Where the released code divides by zero (layers that are all alike) the weights are equal here; a_k is at least 0.001,
where the released code lets it be negative; and layer 2 keeps its left neighbour, which a negative slice loses there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from isotrope.encoders.parts.part import OWN, Part, Stage
from isotrope.encoders.pooling import Pooling
from isotrope.encoders.stored_fields import Fields
from isotrope.encoders.stored_files import gist
from isotrope.errors import InputError

if TYPE_CHECKING:
    from typing_extensions import Self

    from isotrope.encoders.assembly import Assembly
    from isotrope.encoders.encoder import Encoder

NAME = "sbert-wk"
LEAST_ALIGNMENT = 1e-3
TINY = 1e-20


@dataclass(frozen=True)
class LayerWalk(Part, Pooling):
    """The pooling of SBERT-WK over H_first … H_L.

    ``drop_last`` leaves out the last token of a text ([SEP]), as the authors do.
    """

    type_name = "IsotropeLayerWalk"
    package = OWN
    stage = Stage.POOLING

    name: str = NAME
    modes: tuple[str, ...] = (NAME,)
    first_layer: int = 4
    window: int = 2
    drop_last: bool = True

    @property
    def needs_all_layers(self) -> bool:
        return True

    def __call__(self, layers: Sequence[Tensor], mask: Tensor, weights: Tensor | None = None) -> Tensor:
        states = torch.stack(list(layers[self.first_layer :]), dim=2)  # [rows, width, layers, d]
        present = _without_last(mask) if self.drop_last else mask.bool()
        found = states[present].float()  # [tokens, layers, d]: padding is never looked at
        tokens = (layer_weights(found, self.window).unsqueeze(1) @ found).squeeze(1)
        joined = states.new_zeros((*present.shape, found.shape[-1]), dtype=found.dtype)
        joined[present] = tokens
        bends = found.new_zeros(present.shape)
        bends[present] = bend(found)
        return (share(bends, present).unsqueeze(1) @ joined).squeeze(1).to(layers[-1].dtype)

    @classmethod
    def of(cls, encoder: Encoder) -> Part | None:
        return encoder.pooling if isinstance(encoder.pooling, cls) else None

    def config(self) -> dict[str, Any]:
        return {"first_layer": self.first_layer, "window": self.window, "drop_last": self.drop_last}

    @classmethod
    def read(cls, place: Path, config: dict[str, Any]) -> Self:
        fields = Fields(place / "config.json", config)
        fields.count("first_layer", 0, default=4)
        fields.count("window", default=2)
        fields.flag("drop_last", True)
        try:
            return cls(**config)
        except TypeError as error:
            raise InputError(f"{place}: config.json is not one of an SBERT-WK pooling ({gist(error)}).") from error

    def join(self, assembly: Assembly, place: Path) -> None:
        if not 0 <= self.first_layer < assembly.layers:
            raise InputError(f"{place}: first_layer is {self.first_layer}; the backbone has {assembly.layers} layers.")
        assembly.pooling = self

    def on_features(self, features: dict[str, Any]) -> dict[str, Any]:
        return {"sentence_embedding": self(features["all_layer_embeddings"], features["attention_mask"])}


def layer_weights(states: Tensor, window: int) -> Tensor:
    """[tokens, layers] for states [tokens, layers, d]; rows sum to 1."""
    count = states.shape[1]
    alignment, novelty = [], []
    for layer in range(count):
        near = [other for other in range(max(layer - window, 0), min(layer + window + 1, count)) if other != layer]
        columns = states[:, [*near, layer]].transpose(1, 2)
        triangle = torch.linalg.qr(columns, mode="r").R  # [tokens, n, n]
        inside, own = triangle[:, :-1, :-1], triangle[:, :, -1]
        projection = normalize(own[:, :-1], dim=1)
        aligned = (normalize(inside, dim=1).mean(dim=2) * projection).sum(dim=1)
        alignment.append(1 / (2 * columns.shape[2] * aligned.clamp(min=LEAST_ALIGNMENT)))
        novelty.append(own[:, -1].abs() / own.norm(dim=1).clamp(min=TINY))
    return (share(torch.stack(alignment, dim=1)) + share(torch.stack(novelty, dim=1))) / 2


def bend(states: Tensor) -> Tensor:
    """[tokens]: the variance of the cosine of neighbouring layers.

    Taken of 1 − cosine = ‖u − v‖² / 2: neighbours are much alike, and float32 would lose the difference of 0.9999 and
    0.9998.
    """
    units = normalize(states, dim=-1)
    return ((units[:, :-1] - units[:, 1:]).pow(2).sum(dim=-1) / 2).var(dim=1, correction=0)


def share(values: Tensor, present: Tensor | None = None) -> Tensor:
    """Each row divided by its sum; equal shares where there is nothing to divide."""
    everyone = torch.ones_like(values) if present is None else present.to(values.dtype)
    total = values.sum(dim=1, keepdim=True)
    return torch.where(
        total > TINY, values / total.clamp(min=TINY), everyone / everyone.sum(dim=1, keepdim=True).clamp(min=1)
    )


def _without_last(mask: Tensor) -> Tensor:
    """All tokens but the last of each row, padded on the right; a lone token stays."""
    lengths = mask.sum(dim=1, keepdim=True)
    return torch.arange(mask.shape[1], device=mask.device) < (lengths - 1).clamp(min=1)
