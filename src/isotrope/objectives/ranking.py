"""Losses on the order of scored pairs."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isotrope.objectives.contrast import contrast
from isotrope.objectives.vectors import check_shapes, wide


def cosent(similarities: Tensor, labels: Tensor, scale: float = 20.0) -> Tensor:
    """CoSENT (Su 2022): a pair with the higher label must have the higher similarity.

        L = log( 1 + Σ_{y_i < y_j} exp(scale · (s_i − s_j)) )

    ``similarities`` and ``labels`` [N]: one cosine and one score for each pair of texts.

    Use it for pairs with graded scores: only their order counts, as in Spearman's correlation. It is one number for the
    batch, not a mean over pairs, and grows with the batch. Pairs of equal label are not compared, so a batch of one
    label gives 0. Labels that are classes belong to ``supervised_contrast``.
    """
    check_shapes(similarities=(similarities, "N"), labels=(labels, "N"))
    similarities = wide(similarities)
    wrong_by = scale * (similarities.unsqueeze(1) - similarities)
    lower = labels.unsqueeze(1) < labels
    # The 1 is a candidate of score 0, and it is the right one.
    scores = torch.cat([similarities.new_zeros(1), wrong_by.masked_fill(~lower, -math.inf).flatten()])
    return contrast(scores.unsqueeze(0), torch.zeros(1, dtype=torch.int64, device=scores.device))
