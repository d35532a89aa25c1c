"""k-NN: the nearest labelled vectors vote for the class of another.

    score of class c = Σ over the k nearest with label c of exp(cos / τ)

As in instance discrimination (Wu et al. 2018) and MoCo's monitor (k 200, τ 0.1). Nothing is fitted, so it shows what
the cosines themselves hold; a logistic regression finds more, in directions that cosine gives little weight.
"""

from __future__ import annotations

import torch
from torch import Tensor

from isotrope.measures.nearest_rows import top_rows

NEIGHBOURS, TEMPERATURE = 200, 0.1
AT_ONCE = 1024  # rows that are compared with all labelled vectors


def neighbour_votes(
    vectors: Tensor,
    known: Tensor,
    labels: Tensor,
    classes: int,
    neighbours: int = NEIGHBOURS,
    temperature: float = TEMPERATURE,
) -> Tensor:
    """[rows, classes]: the votes for each row of ``vectors``, summing to 1. ``labels`` are those of ``known``."""
    rows, bank = (torch.nn.functional.normalize(side, dim=1) for side in (vectors, known))
    votes = []
    for block in rows.split(AT_ONCE):
        cosines, places = top_rows(block, bank, neighbours)
        weights = (cosines / temperature).softmax(dim=1)
        votes.append(weights.new_zeros(len(block), classes).scatter_add_(1, labels[places], weights))
    return torch.cat(votes)
