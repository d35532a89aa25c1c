"""Weights of tokens, for a weighted mean:

one for each of the vocabulary, which sentence-transformers calls WordWeights.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from isotrope.tokens.padded import Tokens


class TokenWeights(nn.Module):
    """weight(token); the mean over tokens becomes Σ w h / Σ w. A buffer: training leaves it alone."""

    weights: Tensor

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.register_buffer("weights", weights.to(torch.float32))

    def forward(self, tokens: Tokens, states: Tensor) -> Tensor:
        return self.weights[tokens.ids]
