"""Batch norm of vectors for a head that only training sees: it keeps nothing from one batch to the next.

    y = (x − mean) / √(variance + ε) · γ + β

Mean and variance are those of the rows it is given, over all processes. There are no running statistics: nobody reads
the head after training, and a forward may run twice on one batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from isotrope.encoders.shared_batch_norm import process_count, summed


class BatchScale(nn.Module):
    """In training as in evaluation by the statistics of the batch [rows, width]; at least two rows."""

    def __init__(self, width: int, affine: bool = True, shift: bool = True, epsilon: float = 1e-5) -> None:
        """``affine``: with γ and, where it may ``shift``, β."""
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width)) if affine else None
        self.bias = nn.Parameter(torch.zeros(width)) if affine and shift else None
        self.epsilon = epsilon

    def forward(self, vectors: Tensor) -> Tensor:
        values = vectors.float()
        if process_count() == 1:
            return batch_norm(values, None, None, self.weight, self.bias, training=True, eps=self.epsilon)
        count = summed(torch.tensor(float(len(values)), device=values.device))
        centred = values - summed(values.sum(dim=0)) / count
        scaled = centred * (summed(centred.square().sum(dim=0)) / count + self.epsilon).rsqrt()
        scaled = scaled if self.weight is None else scaled * self.weight
        return scaled if self.bias is None else scaled + self.bias
