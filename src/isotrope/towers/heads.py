"""Freshly drawn heads: SimCSE's, and the projection that training alone sees."""

from __future__ import annotations

from torch import nn

from isotrope.encoders.parts.dense import Dense


def tanh_head(width: int, spread: float = 0.02) -> Dense:
    """SimCSE's head: Linear(d, d) and tanh, freshly drawn."""
    head = Dense(width, activation=nn.Tanh())
    nn.init.normal_(head.linear.weight, std=spread)
    nn.init.zeros_(head.linear.bias)
    return head


def projection_head(width: int, output: int, layers: int) -> nn.Sequential:
    """SimCLR's and MoCo's head:

    ``layers`` linear maps with ReLU between, the last one to ``output``; none at all gives its input.
    """
    hidden = [part for _ in range(layers - 1) for part in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*hidden, *[nn.Linear(width, output)][:layers])
