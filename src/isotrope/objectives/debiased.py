"""DCLR's loss (Zhou et al. 2022): false negatives weigh nothing, noise vectors are extra negatives."""

from __future__ import annotations

import torch
from torch import Tensor

from isotrope.objectives.contrast import contrast
from isotrope.objectives.vectors import check_shapes, check_temperature, unit


def debiased(
    anchors: Tensor,
    positives: Tensor,
    noise: Tensor,
    weights: Tensor,
    temperature: float | Tensor = 0.05,
    positive_in_denominator: bool = True,
) -> Tensor:
    """Anchor i must find positive i among the weighted positives of the batch and the noise.

        ℓ_i = −log  exp(cos(a_i, p_i)/τ) / [ Σ_j w_ij exp(cos(a_i, p_j)/τ) + Σ_n exp(cos(a_i, n)/τ) ],   w_ii = 1

    ``weights`` [N, N] ≥ 0: the paper's are 0 where another encoder finds i and j too similar, and 1 elsewhere.
    ``noise`` [k, d] may be empty. The paper prints the denominator without the positive: that is w_ii = 0, where
    ``positive_in_denominator`` is False. The loss may then fall below 0, and the gradient does not fade where the
    positive is found already, so that negatives and noise go on pushing. An anchor without negatives is left out of
    the mean.

    Use it where a batch holds many near-paraphrases and a second encoder can find them. A weight multiplies the
    exponential: multiplying the score, as the released code does, leaves a candidate of score 0 behind. With all
    weights 1 and no noise it is ``info_nce``.
    """
    check_temperature(temperature)
    check_shapes(anchors=(anchors, "N d"), positives=(positives, "N d"), noise=(noise, "k d"), weights=(weights, "N N"))
    anchors = unit(anchors)
    scores = anchors @ torch.cat([unit(positives), unit(noise)]).T / temperature
    own = torch.eye(len(anchors), dtype=torch.bool, device=scores.device)
    targets = torch.arange(len(anchors), device=scores.device)
    weights = weights.to(scores.dtype).masked_fill(own, float(positive_in_denominator))
    compared = weights.any(dim=1) | bool(len(noise))
    weights = weights.masked_fill(own & ~compared.unsqueeze(1), 1.0)  # against itself alone: a loss of 0, not log 0
    weights = torch.cat([weights, weights.new_ones(len(anchors), len(noise))], dim=1)
    return contrast(scores, targets, weights, reduction="sum") / compared.sum().clamp(min=1)
