"""Weights of tokens, which make a mean over tokens a weighted one: v = Σ w_t h_t / Σ w_t.

``TokenWeights`` has one fixed weight for each token of the vocabulary (the space sif sets them); attention.py computes
them from the states. On disk the first is WordWeights of sentence-transformers.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from isotrope.encoders.parts.part import Part, Stage
from isotrope.encoders.stored_files import REPAIR, read_tensors
from isotrope.errors import InputError
from isotrope.tokens.padded import Tokens

if TYPE_CHECKING:
    from typing_extensions import Self

    from isotrope.encoders.assembly import Assembly
    from isotrope.encoders.encoder import Encoder


class TokenWeighting(nn.Module):
    """Anything that weighs tokens.

    ``pooling_name`` is the pooling that the weights belong to: a model loaded with another pooling does without them.
    Empty: they belong to the model, which then takes no other pooling.
    """

    pooling_name: ClassVar[str] = ""

    def forward(self, tokens: Tokens, states: Tensor) -> Tensor:
        """Weights [rows, width] of tokens with last states [rows, width, d]."""
        raise NotImplementedError


class TokenWeights(TokenWeighting):
    """weight(token), looked up by id. A buffer: training leaves it alone."""

    weights: Tensor  # [vocabulary]

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.register_buffer("weights", weights.to(torch.float32))

    def forward(self, tokens: Tokens, states: Tensor) -> Tensor:
        return self.weights[tokens.ids]


@dataclass(frozen=True, eq=False)
class WordWeights(Part):
    """``TokenWeights`` on disk: the vocabulary, and a weight for each of its words."""

    type_name = "WordWeights"
    stage = Stage.TOKENS

    words: tuple[str, ...]
    weights: Tensor

    @classmethod
    def of(cls, encoder: Encoder) -> Part | None:
        if not isinstance(encoder.token_weights, TokenWeights):
            return None
        weights = encoder.token_weights.weights.cpu()
        words = encoder.tokenizer.convert_ids_to_tokens(list(range(len(weights))))
        return cls(tuple(str(word) for word in words), weights)

    def config(self) -> dict[str, Any]:
        # A word without a weight of its own would get that of its lower case.
        table = dict(zip(self.words, self.weights.tolist(), strict=True))
        return {"vocab": list(self.words), "word_weights": table, "unknown_word_weight": 1.0}

    def tensors(self) -> dict[str, Tensor]:
        return {"emb_layer.weight": self.weights.unsqueeze(1)}

    @classmethod
    def read(cls, place: Path, config: dict[str, Any]) -> Self:
        weights = read_tensors(place).get("emb_layer.weight")
        if weights is None:
            raise InputError(f"{place}: the weights of the words (emb_layer.weight) are missing.")
        if weights.dim() != 2 or weights.shape[1] != 1 or not bool(weights.isfinite().all()):
            raise InputError(f"{place}: emb_layer.weight is not one finite weight a word; {REPAIR}.")
        return cls(tuple(config.get("vocab", ())), weights.squeeze(1))

    def join(self, assembly: Assembly, place: Path) -> None:
        words = len(assembly.first.tokenizer)
        if len(self.weights) < words:
            raise InputError(
                f"{place}: emb_layer.weight weighs {len(self.weights):,} words, and the tokenizer has {words:,}; "
                f"{REPAIR}."
            )
        assembly.token_weights = TokenWeights(self.weights)
