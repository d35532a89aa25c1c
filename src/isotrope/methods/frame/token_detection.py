"""Which tokens were replaced: loss and counts of each row, their mean over the batch, and how many are found."""

from __future__ import annotations

import torch
from torch import Tensor

from isotrope.objectives.detection import detection_losses


def detected(scores: Tensor, replaced: Tensor, valid: Tensor) -> dict[str, Tensor]:
    """Of each row the sum of its tokens' losses, and how many tokens are there, are replaced, are taken for replaced,
    and both; ``scores`` above 0 say that a token was replaced, ``valid`` leaves out padding.
    """
    taken = (scores > 0) & valid
    counts = [valid, replaced & valid, taken, taken & replaced]
    return {
        "detection_losses": detection_losses(scores, replaced, valid).sum(1),
        "detection_counts": torch.stack([count.sum(1) for count in counts], dim=1),
    }


def detection_loss(representations: dict[str, Tensor]) -> Tensor:
    """The mean over all tokens of the batch."""
    tokens = representations["detection_counts"][..., 0].sum()
    return representations["detection_losses"].sum() / tokens.clamp(min=1)


def detection_measures(representations: dict[str, Tensor]) -> dict[str, Tensor]:
    """The share of tokens that are replaced, and F1 of finding them."""
    tokens, replaced, taken, both = representations["detection_counts"].flatten(0, -2).sum(0).float()
    return {"replaced": replaced / tokens.clamp(min=1), "replaced_f1": 2 * both / (replaced + taken).clamp(min=1)}
