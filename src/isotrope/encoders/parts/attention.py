"""Attention as a read-out (Felbo et al. 2017, DeepMoji): one learned vector decides how much each token weighs.

    e_t = w · h_t,   a = softmax over the tokens that are not padding,   v = Σ_t a_t h_t

w = 0 is the mean, and where training starts from. Unlike token_weights.py, where a token weighs the same in every text,
the weight depends on the state. sentence-transformers has no stock module for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isotrope.encoders.parts.part import OWN, ModulePart, Part, Stage
from isotrope.encoders.parts.token_weights import TokenWeighting
from isotrope.encoders.pooling import Pooling
from isotrope.encoders.stored_fields import Fields
from isotrope.encoders.stored_files import REPAIR
from isotrope.errors import InputError
from isotrope.tokens.padded import Tokens

if TYPE_CHECKING:
    from typing_extensions import Self

    from isotrope.encoders.assembly import Assembly
    from isotrope.encoders.encoder import Encoder

ATTENTION = Pooling("attention", ("attention",))


class Attention(ModulePart, TokenWeighting):
    """The weights a_t of the tokens of H_L, [rows, width]; they sum to 1 and are 0 on padding."""

    type_name = "IsotropeAttention"
    package = OWN
    stage = Stage.POOLING
    pooling_name = ATTENTION.name

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.zeros(width))

    def forward(self, tokens: Tokens, states: Tensor) -> Tensor:
        return attention_weights(states, tokens.mask, self.vector)

    @classmethod
    def of(cls, encoder: Encoder) -> Part | None:
        return encoder.token_weights if isinstance(encoder.token_weights, cls) else None

    def config(self) -> dict[str, Any]:
        return {"width": len(self.vector)}

    @classmethod
    def read(cls, place: Path, config: dict[str, Any]) -> Self:
        Fields(place / "config.json", config).count("width", most=1 << 20)
        return super().read(place, config)

    def join(self, assembly: Assembly, place: Path) -> None:
        states = int(assembly.first.backbone.config.hidden_size)
        if len(self.vector) != states:
            raise InputError(
                f"{place / 'config.json'}: width is {len(self.vector)}, and the backbone's states have {states}; "
                f"{REPAIR}."
            )
        assembly.pooling, assembly.token_weights = ATTENTION, self

    def on_features(self, features: dict[str, Any]) -> dict[str, Any]:
        states = features["token_embeddings"]
        weights = attention_weights(states, features["attention_mask"], self.vector)
        return {"sentence_embedding": (weights.unsqueeze(-1) * states).sum(dim=1)}


def attention_weights(states: Tensor, mask: Tensor, vector: Tensor) -> Tensor:
    """softmax(w · h_t) over the tokens of each row, in float32 at least: autocast would round a matrix product.

    A row without a token has no weight at all.
    """
    scores = (states.to(torch.promote_types(states.dtype, torch.float32)) * vector).sum(dim=-1)
    return torch.softmax(scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min), dim=1) * mask


def attend(encoder: Encoder) -> None:
    """Make attention the encoder's read-out from now on, also after it is saved; one that is there stays as it is."""
    if isinstance(encoder.token_weights, Attention):
        return
    if encoder.token_weights is not None:
        raise InputError(
            "This model weighs its tokens by their frequency (sif), so attention cannot; "
            "start from the model before that."
        )
    encoder.pooling = ATTENTION
    encoder.token_weights = Attention(int(encoder.backbone.config.hidden_size)).to(encoder.device)
