"""The mutual information of two views that a contrastive loss proves."""

from __future__ import annotations

import math

from torch import Tensor

from isotrope.errors import InputError


def info_bound(loss: Tensor, candidates: int) -> Tensor:
    """The lower bound that InfoNCE puts on the mutual information of two views, in nats.

        I(A; B) ≥ log K − L

    ``candidates`` is K, the positive among them. Log it to compare runs of different batch sizes, whose losses are not
    comparable. The bound never exceeds log K. It holds where the K − 1 others are drawn from the marginal and one
    candidate is right: with hard negatives or a queue of stale keys it is a number, not a bound.
    """
    if candidates < 1:
        raise InputError(f"candidates counts the positive too, so it is at least 1; {candidates} was given.")
    return math.log(candidates) - loss
