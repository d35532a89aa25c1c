"""The one equation, and the two forms of it that papers call "the contrastive loss".

    L_i = − Σ_j t_ij · [ s_ij − log Σ_k w_ik · exp(s_ik) ]

Every function works in float32 at least, whatever it is given: half precision cannot hold exp(20).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives.chunked import chunked_contrast, is_large
from isotrope.objectives.vectors import check_shapes, check_temperature, mean, unit, wide


def contrast(scores: Tensor, targets: Tensor, weights: Tensor | None = None, reduction: str = "mean") -> Tensor:
    """Cross-entropy between ``targets`` and the weighted softmax of ``scores`` over the candidates of each row.

        L_i = − Σ_j t_ij · [ s_ij − log Σ_k w_ik · exp(s_ik) ]

    ``scores`` [rows, candidates] are similarities divided by the temperature; −inf leaves a candidate out, and so does
    weight 0. ``targets``: rows that sum to 1, or the index of the one right candidate (int64). ``reduction``: "mean",
    "sum" or "none".

    Use it to write a new objective: choose rows, candidates, targets and weights. A weight multiplies exp(score), so it
    is the weight itself, not its logarithm.
    """
    scores = wide(scores)
    if weights is not None and weights.requires_grad:
        total = _learned_total(scores, weights.to(scores.dtype))
    else:
        weighted = scores if weights is None else scores + weights.to(scores.dtype).log()
        total = torch.logsumexp(weighted, dim=-1)
    if targets.dtype.is_floating_point:
        # A candidate that is left out has score −inf and target 0: 0 · inf must stay 0.
        log_ratio = (scores - total.unsqueeze(-1)).masked_fill(targets == 0, 0.0)
        losses = -(targets.to(scores.dtype) * log_ratio).sum(dim=-1)
    else:
        losses = total - scores.gather(-1, targets.unsqueeze(-1)).squeeze(-1)
    if reduction == "none":
        return losses
    if reduction not in ("mean", "sum"):
        raise InputError(f"reduction is one of mean, sum, none; '{reduction}' was given.")
    return mean(losses) if reduction == "mean" else losses.sum()


def _learned_total(scores: Tensor, weights: Tensor) -> Tensor:
    """log Σ_k w_k exp(s_k) for weights that take a gradient, which is exp(s_k) / Σ also where w_k is 0.

        log Σ_k w_k exp(s_k)  =  T + log(1 + Σ_{w_k = 0} w_k exp(s_k − T)),   T = log Σ_{w_k > 0} w_k exp(s_k)

    The second term is 0 and has the gradients that log 0 cannot have.
    """
    out = weights == 0
    total = torch.logsumexp(scores + weights.masked_fill(out, 1.0).log().masked_fill(out, -math.inf), dim=-1)
    above = (scores - total.unsqueeze(-1)).clamp(max=0.99 * math.log(torch.finfo(scores.dtype).max))  # 0 · inf is NaN
    return total + (weights.masked_fill(~out, 0.0) * above.exp()).sum(dim=-1).log1p()


def info_nce(
    anchors: Tensor,
    candidates: Tensor,
    temperature: float | Tensor = 0.05,
    negatives: Tensor | None = None,
    negative_weight: float = 1.0,
) -> Tensor:
    """SimCSE's loss: anchor i must find candidate i among all candidates, one way.

        ℓ_i = −log  exp(cos(a_i, c_i)/τ) / Σ_j [ exp(cos(a_i, c_j)/τ) + α^{1[i=j]} exp(cos(a_i, n_j)/τ) ]

    ``candidates`` [M, d] may be more than the anchors: the rest are negatives. ``negatives`` [N, d]: one hard negative
    for each row, a candidate of every row. ``negative_weight`` is α, the weight of the row's own negative in the
    denominator.

    Use it for pairs of different roles (question and answer, two passes with dropout). The released SimCSE flag of a
    similar name is log α. A repeated text in the batch is its own false negative. ``nt_xent`` also compares candidates
    with each other; ``queue_nce`` takes its negatives from earlier batches.
    """
    check_temperature(temperature)
    check_shapes(anchors=(anchors, "N d"), candidates=(candidates, "M d"))
    if len(candidates) < len(anchors):
        raise InputError(
            f"Candidate i is the positive of anchor i, but there are {len(anchors)} anchors and {len(candidates)} "
            "candidates."
        )
    targets = torch.arange(len(anchors), device=anchors.device)
    if negatives is not None:
        check_shapes(anchors=(anchors, "N d"), negatives=(negatives, "N d"))
    if negative_weight < 0:
        raise InputError(f"negative_weight is the weight itself and must not be negative; {negative_weight} was given.")
    if is_large(anchors, candidates, *([] if negatives is None else [negatives])):
        if negatives is None:
            return chunked_contrast(anchors, candidates, targets, temperature)
        pool, own = torch.cat([candidates, negatives]), len(candidates) + targets
        return chunked_contrast(anchors, pool, targets, temperature, own, negative_weight)
    anchors, candidates = unit(anchors), unit(candidates)
    scores = anchors @ candidates.T / temperature
    if negatives is None:
        return contrast(scores, targets)
    scores = torch.cat([scores, anchors @ unit(negatives).T / temperature], dim=1)
    weights = torch.ones_like(scores)
    weights[targets, len(candidates) + targets] = negative_weight
    return contrast(scores, targets, None if negative_weight == 1.0 else weights)


def nt_xent(first: Tensor, second: Tensor, temperature: float | Tensor = 0.1) -> Tensor:
    """SimCLR's loss: 2N anchors, each against the 2N − 1 others, the positive among them.

        ℓ_i = −log  exp(cos(z_i, z_p(i))/τ) / Σ_{k≠i} exp(cos(z_i, z_k)/τ),   z = [first; second], p(i) = i ± N

    Use it where the two views play the same role. The mean is over the 2N anchors; the released code gives twice this.
    ``info_nce`` is its one-way form, without the candidates of the anchor's own side.
    """
    check_temperature(temperature)
    check_shapes(first=(first, "N d"), second=(second, "N d"))
    views = unit(torch.cat([first, second]))
    if is_large(views, views):
        itself = torch.arange(len(views), device=views.device)
        return chunked_contrast(views, views, itself.roll(len(first)), temperature, itself, weight=0.0)
    scores = views @ views.T / temperature
    scores = scores.masked_fill(torch.eye(len(views), dtype=torch.bool, device=scores.device), -math.inf)
    targets = torch.arange(len(views), device=scores.device).roll(len(first))
    return contrast(scores, targets)
