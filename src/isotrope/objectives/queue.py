"""MoCo's loss (He et al. 2020): the negatives are a queue of earlier keys, so their number does not depend on the
batch.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isotrope.objectives.chunked import Marks, is_large, log_total
from isotrope.objectives.contrast import contrast
from isotrope.objectives.vectors import check_shapes, check_temperature, mean, unit


def queue_nce(
    queries: Tensor,
    keys: Tensor,
    queue: Tensor,
    temperature: float | Tensor = 0.07,
    left_out: Tensor | None = None,
) -> Tensor:
    """Query i must find its own key among that key and the queue (MoCo, CERT).

        ℓ_i = −log  exp(cos(q_i, k_i)/τ) / [ exp(cos(q_i, k_i)/τ) + Σ_u exp(cos(q_i, u)/τ) ]

    ``queue`` [K, d] may be empty, and may be overwritten between this call and the backward pass. ``left_out`` [N, K]:
    keys that are no candidates of a query, such as its own old one.

    Use it where memory allows only small batches. The other keys of the batch are not candidates: they join the queue
    after the step. Keys must come from a slowly moving encoder without gradient (nothing is detached here), or old keys
    are not comparable with new queries. ``info_nce`` takes its negatives from the batch instead.
    """
    check_temperature(temperature)
    check_shapes(queries=(queries, "N d"), keys=(keys, "N d"), queue=(queue, "K d"))
    queries = unit(queries)
    own = (queries * unit(keys)).sum(dim=-1, keepdim=True) / temperature
    if left_out is not None:
        check_shapes(queries=(queries, "N d"), queue=(queue, "K d"), left_out=(left_out, "N K"))
    if is_large(queries, queue):
        # The queue may be overwritten before the backward pass, which makes the scores again: unit() copies it.
        total = log_total(queries, unit(queue), temperature, Marks(left_out=left_out))
        return mean(torch.logaddexp(own.squeeze(1), total) - own.squeeze(1))
    others = queries @ unit(queue).T / temperature
    if left_out is not None:  # after the division: −inf / τ has no derivative
        others = others.masked_fill(left_out, -math.inf)
    scores = torch.cat([own, others], dim=1)
    return contrast(scores, torch.zeros(len(scores), dtype=torch.int64, device=scores.device))
