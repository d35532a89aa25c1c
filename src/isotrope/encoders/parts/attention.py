"""Attention as a read-out (Felbo et al. 2017, DeepMoji): each token weighs as much as one learned vector finds it
worth.

    e_t = w · h_t,   a = softmax over the tokens that stand,   v = Σ_t a_t h_t

w = 0 is the mean, and where training starts from. There is no stock module of sentence-transformers for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from isotrope.encoders.pooling import Pooling
from isotrope.errors import InputError
from isotrope.tokens.padded import Tokens

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

ATTENTION = Pooling("attention", ("attention",))


class Attention(nn.Module):
    """The weights a_t of the tokens of H_L, [rows, width]; they sum to 1 and are 0 on padding."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.vector = nn.Parameter(torch.zeros(width))

    def forward(self, tokens: Tokens, states: Tensor) -> Tensor:
        return attention_weights(states, tokens.mask, self.vector)


def attention_weights(states: Tensor, mask: Tensor, vector: Tensor) -> Tensor:
    """Each row by its own largest score, in float32 at least; a matrix product would be rounded under autocast."""
    scores = (states.to(torch.promote_types(states.dtype, torch.float32)) * vector).sum(dim=-1)
    return torch.softmax(scores.masked_fill(mask == 0, float("-inf")), dim=1)


def attend(encoder: Encoder) -> None:
    """From now on attention reads the encoder's vectors out, also after it is saved.

    One that attends already goes on from there.
    """
    if isinstance(encoder.token_weights, Attention):
        return
    if encoder.token_weights is not None:
        raise InputError(
            "This model weighs its tokens by their frequency (sif), so attention cannot; start from the model before that."
        )
    encoder.pooling = ATTENTION
    encoder.token_weights = Attention(int(encoder.backbone.config.hidden_size)).to(encoder.device)
