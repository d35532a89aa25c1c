"""QuickThoughts' loss (Logeswaran, Lee 2018): a sentence must find its neighbours in the text."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives.contrast import contrast
from isotrope.objectives.vectors import check_shapes, check_temperature, wide


def neighbour_prediction(
    first: Tensor, second: Tensor, window: int = 1, temperature: float | Tensor = 1.0, *, places: Tensor | None = None
) -> Tensor:
    """Sentence i of one encoder must find its neighbours among all other sentences of the second encoder.

        ℓ_i = −Σ_j t_ij log [ exp(f_i·g_j/τ) / Σ_{k≠i} exp(f_i·g_k/τ) ]

    t_ij are equal for 0 < |i − j| ≤ window, and sum to 1.

    Use it for running text in order, dealt in consecutive batches; ``info_nce`` is for pairs. Rows are consecutive
    sentences of one text; the first and the last have neighbours on one side only. ``places`` [N], whole numbers, say
    where the rows stand where this is not 0 … N − 1: the gap between two documents must exceed the window.

    Scores are raw dot products. The sentence itself is not a candidate; the released code gives it score 0, where it
    stays one. A row without a neighbour is left out of the mean and stays a candidate of the others.
    """
    check_temperature(temperature)
    check_shapes(first=(first, "N d"), second=(second, "N d"))
    if len(first) < 2:
        raise InputError(
            f"A sentence needs a neighbour: at least 2 consecutive rows are expected, {len(first)} was given."
        )
    if window < 1:
        raise InputError(f"window counts the neighbours on each side and must be at least 1; {window} was given.")
    if places is None:
        places = torch.arange(len(first), device=first.device)
    check_shapes(first=(first, "N d"), places=(places, "N"))
    itself = torch.eye(len(first), dtype=torch.bool, device=first.device)
    scores = (wide(first) @ wide(second).T / temperature).masked_fill(itself, -math.inf)
    near = (((places.unsqueeze(1) - places).abs() <= window) & ~itself).to(scores.dtype)
    counts = near.sum(dim=1, keepdim=True)
    # Without a neighbour a row has no targets, so its loss is 0 and only the count must know.
    losses = contrast(scores, near / counts.clamp(min=1), reduction="none")
    return losses.sum() / (counts > 0).sum().clamp(min=1)
