"""Supervised contrastive learning (Khosla et al. 2020): all rows of one label are positives of each other."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives.contrast import contrast
from isotrope.objectives.vectors import check_shapes, check_temperature, mean, unit


def supervised_contrast(
    embeddings: Tensor, labels: Tensor, temperature: float | Tensor = 0.1, form: str = "out"
) -> Tensor:
    """Each row must find the rows P_i of its label among all others.

        "out":  ℓ_i = −1/|P_i| Σ_{p∈P_i} log [ exp(cos(z_i, z_p)/τ) / Σ_{a≠i} exp(cos(z_i, z_a)/τ) ]
        "in":   ℓ_i = −log [ 1/|P_i| Σ_{p∈P_i} exp(cos(z_i, z_p)/τ) / Σ_{a≠i} exp(cos(z_i, z_a)/τ) ]

    One row for each view: two views of a record are two rows of one label.

    Use it for classes with several records in a batch (the order "by-class"). "out" is the paper's better form. A row
    without a positive is left out of the mean (the released code counts it as 0) and stays a candidate of the others.
    The released code also multiplies the loss by τ / 0.07. With labels 0 … N − 1, twice each, it is ``nt_xent``.
    """
    if form not in ("in", "out"):
        raise InputError(f"form is one of in, out; '{form}' was given.")
    check_temperature(temperature)
    check_shapes(embeddings=(embeddings, "N d"), labels=(labels, "N"))
    views = unit(embeddings)
    itself = torch.eye(len(views), dtype=torch.bool, device=views.device)
    positives = (labels.unsqueeze(1) == labels) & ~itself
    anchors = positives.any(dim=1)
    scores = (views @ views.T / temperature).masked_fill(itself, -math.inf)[anchors]
    positives = positives[anchors]
    counts = positives.sum(dim=1, keepdim=True).to(scores.dtype)
    if form == "out":
        return contrast(scores, positives / counts)
    averaged = torch.logsumexp(scores.masked_fill(~positives, -math.inf), dim=1) - counts.squeeze(1).log()
    return mean(torch.logsumexp(scores, dim=1) - averaged)
