"""The loss of a normalising flow (BERT-flow; Li et al. 2020): the negative log-likelihood of what it maps."""

from __future__ import annotations

import math

from torch import Tensor

from isotrope.objectives.vectors import check_shapes, mean, wide


def bits_per_dimension(latents: Tensor, log_det: Tensor) -> Tensor:
    """What a flow minimises, in bits for each dimension, mean over the rows.

        −log₂ p(u) / D,   log p(u) = log N(z; 0, I) + log |det ∂z/∂u|

    ``latents`` z [N, D], ``log_det`` [N].

    Use it to fit an invertible map of vectors that are already there; it trains no encoder. It is a density, so values
    below 0 are nothing strange. A standard normal gives ½ log₂(2πe) = 2.047.
    """
    check_shapes(latents=(latents, "N D"), log_det=(log_det, "N"))
    latents, log_det = wide(latents), wide(log_det)
    dimensions = latents.shape[1]
    log_normal = -0.5 * (latents.pow(2).sum(dim=1) + dimensions * math.log(2 * math.pi))
    return mean(-(log_normal + log_det) / (dimensions * math.log(2)))
