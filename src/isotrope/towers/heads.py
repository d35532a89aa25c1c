"""Heads drawn at random: SimCSE's, and projections that exist only while training."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import batch_norm

from isotrope.encoders.parts.dense import Dense
from isotrope.encoders.shared_batch_norm import process_count, summed


class BatchScale(nn.Module):
    """Batch norm of vectors [rows, width], at least two rows, that keeps nothing from one batch to the next.

        y = (x − mean) / √(variance + ε) · γ + β

    Mean and variance are those of the rows it is given, over all processes, in training as in evaluation. There are no
    running statistics: nobody reads the head after training, and a forward may run twice on one batch.
    """

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


SPREAD = 0.02


def tanh_head(width: int, spread: float = SPREAD) -> Dense:
    """SimCSE's head: tanh(x W + b), d → d, W drawn with standard deviation ``spread``. It can be saved as a Dense."""
    head = Dense(width, activation=nn.Tanh())
    nn.init.normal_(head.linear.weight, std=spread)
    nn.init.zeros_(head.linear.bias)
    return head


def projection_head(width: int, output: int, layers: int, norm: bool = False) -> nn.Sequential:
    """SimCLR's and MoCo's head: ``layers`` linear maps with ReLU between, the last to ``output``; 0: the identity.

    Training compares what it gives; inference keeps the vectors before it, which hold more of the text. With ``norm``
    it is that of SimCLR's released code: no biases, a batch norm behind each map, the last one without a shift. Give
    that all views together.
    """
    parts: list[nn.Module] = []
    for number in range(1, layers + 1):
        last = number == layers
        to = output if last else width
        parts += [nn.Linear(width, to, bias=not norm)]
        parts += [BatchScale(to, shift=not last)] if norm else []
        parts += [] if last else [nn.ReLU()]
    return nn.Sequential(*parts)


def normed_head(width: int, output: int) -> nn.Sequential:
    """A projection with batch norm, without biases: d → 2d, norm, ReLU, 2d → ``output``, norm without scale and shift.

    Its vectors have mean 0 and variance 1 in each dimension, over the batch. Give it both views together.
    """
    first, second = nn.Linear(width, 2 * width, bias=False), nn.Linear(2 * width, output, bias=False)
    for layer in (first, second):
        nn.init.normal_(layer.weight, std=SPREAD)
    return nn.Sequential(first, BatchScale(2 * width), nn.ReLU(), second, BatchScale(output, affine=False))
