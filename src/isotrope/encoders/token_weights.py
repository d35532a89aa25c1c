"""One weight for each token of the vocabulary, for a weighted mean: what sentence-transformers calls WordWeights."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class TokenWeights(nn.Module):
    """weight(token); the mean over tokens becomes Σ w h / Σ w. A buffer: training leaves it alone."""

    weights: Tensor

    def __init__(self, weights: Tensor) -> None:
        super().__init__()
        self.register_buffer("weights", weights.to(torch.float32))

    def forward(self, ids: Tensor) -> Tensor:
        return self.weights[ids]
