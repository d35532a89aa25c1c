"""What may follow the pooling: the stock modules of sentence-transformers, under their own parameter names."""

from __future__ import annotations

import torch
from torch import nn


class Dense(nn.Module):
    """Linear, then an activation of torch.nn."""

    def __init__(
        self, width: int, output: int | None = None, bias: bool = True, activation: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.linear = nn.Linear(width, output or width, bias=bias)
        self.activation = activation or nn.Identity()

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return self.activation(self.linear(vectors))


class Normalise(nn.Module):
    """Unit length."""

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(vectors, dim=-1)


class Norm(nn.Module):
    """Layer normalisation of the vector."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        return self.norm(vectors)
