"""How a tower is kept while training: trained, frozen, or following another one by momentum.

A tower is any module besides the online encoder. The frame holds them in one dictionary, and asks each of them one
thing: ``after_update``, once an optimiser step is done. A queue of keys is a tower too (key_queue.py).
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


class Tower(nn.Module):
    """A module that exists only while training; by default an optimiser step leaves it as it is."""

    def after_update(self, representations: dict[str, Tensor]) -> None:
        """Called after each optimiser step, with the whole batch's representations, without gradient."""

    def after_restore(self) -> None:
        """Called when a checkpoint has put its tensors back: what is remembered of them on the host is out of date."""


class Trained(Tower):
    """Learns with the encoder: at ``multiple`` times the loop's rate, or at a ``learning_rate`` of its own.

    Take the multiple where the tower should follow whatever rate suits the encoder, the rate itself where the paper
    names one. The schedule of the loop scales both.
    """

    def __init__(self, module: nn.Module, multiple: float = 1.0, *, learning_rate: float | None = None) -> None:
        super().__init__()
        self.module = module
        self.multiple = multiple
        self.learning_rate = learning_rate

    def rate(self, learning_rate: float) -> float:
        """The highest rate of this tower where ``learning_rate`` is the loop's."""
        return self.multiple * learning_rate if self.learning_rate is None else self.learning_rate

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self.module(*inputs, **named)


class Frozen(Tower):
    """Never changes, never drops out, never sees a gradient, whoever calls ``train()`` above it.

    Use it for a teacher or for the weights training started from.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module.requires_grad_(False).eval()

    @classmethod
    def copy_of(cls, module: nn.Module) -> Frozen:
        """A copy of the weights as they are now: make it after loading, or it freezes noise."""
        return cls(copy.deepcopy(module))

    def train(self, mode: bool = True) -> Frozen:
        super().train(mode)
        self.module.eval()
        return self

    @torch.no_grad()
    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self.module(*inputs, **named)


class Momentum(Frozen):
    """Follows another module: θ ← decay · θ + (1 − decay) · θ_online after each optimiser step; buffers are copied."""

    def __init__(self, online: nn.Module, decay: float) -> None:
        super().__init__(copy.deepcopy(online))
        self.decay = decay
        self._online = (online,)  # in a tuple: followed, not owned

    def after_update(self, representations: dict[str, Tensor]) -> None:
        self.follow()

    @torch.no_grad()
    def follow(self) -> None:
        online = self._online[0]
        # A few launches on a GPU, whatever the number of tensors; an empty list is refused.
        if mine := tuple(self.module.parameters()):
            torch._foreach_lerp_(mine, tuple(online.parameters()), 1.0 - self.decay)
        if copied := list(self.module.buffers()):
            torch._foreach_copy_(copied, list(online.buffers()))
