"""Classifiers of SentEval that differ in λ alone: they take the same batches, so a step of all is one plain product.

    scores = X [W_1 … W_k],    gradient = Xᵀ slope + λ ∘ W        X [batch, in + 1], W_j [in + 1, classes]

Where a dev part chooses λ, every classifier learns from the same rows in the same order. The stack of
``senteval_classifier.py`` would gather each batch once a classifier and multiply them one by one; here a batch is
gathered once. Values agree with the stack up to the rounding of sums. Softmax regression alone: the second layer of a
network has inputs of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotrope.evaluation.curvature import product
from isotrope.evaluation.senteval_classifier import Problem, Stack, Training, adam

BLOCK = 8  # batches that are gathered together


def have_same_batches(problems: Sequence[Problem]) -> bool:
    """Whether all learn from the very same array of rows, and draw the same orders of them."""
    first, *others = problems
    return all(other.learn is first.learn and _state(other.orders) == _state(first.orders) for other in others)


def _state(orders: np.random.RandomState) -> tuple[bytes, int]:
    found: Any = orders.get_state(legacy=False)
    return found["state"]["key"].tobytes(), int(found["state"]["pos"])


class SameBatches(Stack):
    """``layers`` has a single entry, [in + 1, problems, classes]."""

    def __init__(
        self, rows: Tensor, labels: Tensor, problems: Sequence[Problem], training: Training, classes: int
    ) -> None:
        super().__init__(rows, labels, problems, training, classes)
        self.layers = [layer.transpose(0, 1).contiguous() for layer in self.layers]
        self.moments = [(torch.zeros_like(layer), torch.zeros_like(layer)) for layer in self.layers]
        self.orders = problems[0].orders  # of all, whoever has stopped

    def layers_of(self, line: int) -> list[Tensor]:
        return [layer[:, line] for layer in self.layers]

    def lines(self, stack: Tensor, chosen: list[int]) -> Tensor:
        return stack[:, chosen]

    def epoch(self) -> None:
        learn, batch = self.learn[0], self.training.batch
        order = learn[torch.from_numpy(self.orders.permutation(len(learn))).to(learn.device)]
        for some in order.split(BLOCK * batch):
            for inputs, labels in zip(self.rows[some].split(batch), self.labels[some].split(batch), strict=True):
                self._step_together(inputs, labels)

    def _step_together(self, inputs: Tensor, labels: Tensor) -> None:
        (layer,), ((mean, square),) = self.layers, self.moments
        slope = product(inputs, layer).softmax(dim=-1)
        wanted = labels[:, None, None].expand(-1, slope.shape[1], 1)
        slope.scatter_add_(2, wanted, slope.new_full((), -1).expand(wanted.shape)).mul_(1 / len(inputs))
        gradient = product(inputs.T, slope).addcmul_(layer, self.penalty.view(1, -1, 1))
        self.taken += 1
        adam(layer, gradient, mean, square, self.taken)
