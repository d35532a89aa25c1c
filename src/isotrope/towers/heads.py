"""Heads drawn at random: SimCSE's, and the projection that exists only while training."""

from __future__ import annotations

from torch import nn

from isotrope.encoders.parts.dense import Dense


def tanh_head(width: int, spread: float = 0.02) -> Dense:
    """SimCSE's head: tanh(x W + b), d → d, W drawn with standard deviation ``spread``. It can be saved as a Dense."""
    head = Dense(width, activation=nn.Tanh())
    nn.init.normal_(head.linear.weight, std=spread)
    nn.init.zeros_(head.linear.bias)
    return head


def projection_head(width: int, output: int, layers: int) -> nn.Sequential:
    """SimCLR's and MoCo's head: ``layers`` linear maps with ReLU between, the last to ``output``; 0: the identity.

    Training compares what it gives; inference keeps the vectors before it, which hold more of the text.
    """
    hidden = [part for _ in range(layers - 1) for part in (nn.Linear(width, width), nn.ReLU())]
    return nn.Sequential(*hidden, *[nn.Linear(width, output)][:layers])
