"""VaSCL's losses (Zhang et al. 2022): a vector and its perturbed copy against the nearest vectors of the batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives.contrast import contrast
from isotrope.objectives.vectors import check_shapes, check_temperature, unit, wide


def neighbourhood(anchors: Tensor, virtual: Tensor, k: int, temperature: float | Tensor = 0.05) -> Tensor:
    """Each vector and its virtual copy must find one another among their k neighbours and the copies of these.

    It is ``contrast_with_neighbours`` (VaSCL's equation 5) with the k nearest rows of ``anchors`` by dot product. The
    paper searches neighbours before the projection and compares after it: then take ``nearest_rows`` of the one and
    ``contrast_with_neighbours`` of the other.
    """
    check_shapes(anchors=(anchors, "M d"), virtual=(virtual, "M d"))
    return contrast_with_neighbours(anchors, virtual, nearest_rows(anchors, k), temperature)


def nearest_rows(vectors: Tensor, k: int) -> Tensor:
    """The k other rows with the largest dot product for each row, int64 [rows, k].

    Nothing is normalised: long vectors are neighbours of many.
    """
    check_shapes(vectors=(vectors, "M d"))
    if not 1 <= k < len(vectors):
        raise InputError(
            f"k must lie between 1 and one fewer than the rows; k = {k} and {len(vectors)} rows were given."
        )
    vectors = wide(vectors.detach())
    itself = torch.eye(len(vectors), dtype=torch.bool, device=vectors.device)
    return (vectors @ vectors.T).masked_fill(itself, -math.inf).topk(k).indices


def contrast_with_neighbours(
    anchors: Tensor, virtual: Tensor, neighbours: Tensor, temperature: float | Tensor = 0.05
) -> Tensor:
    """VaSCL's equation 5 with the neighbours N(i) given, int64 [M, k]; φ(u, v) = exp(cos(u, v)/τ).

        ℓ = −log  φ(z_i, z*_i) / [ φ(z_i, z*_i) + Σ_{n∈N(i)} ( φ(a, z_n) + φ(a, z*_n) ) ],   a = z_i and a = z*_i

    The mean is over the 2M terms. Use it to concentrate a large batch on its hardest negatives; in a small batch the
    neighbours are far away. It is ``nt_xent`` without the other rows, and ``nt_xent`` itself where all are neighbours.
    """
    check_temperature(temperature)
    check_shapes(anchors=(anchors, "M d"), virtual=(virtual, "M d"), neighbours=(neighbours, "M k"))
    views, count = unit(torch.cat([anchors, virtual])), len(anchors)
    near = torch.zeros(count, count, dtype=torch.bool, device=views.device).scatter(1, neighbours, True)
    partner = torch.arange(2 * count, device=views.device).roll(count)
    candidates = near.repeat(2, 2).scatter(1, partner.unsqueeze(1), True)
    return contrast((views @ views.T / temperature).masked_fill(~candidates, -math.inf), partner)


def virtual_contrast(
    virtual: Tensor, anchors: Tensor, neighbours: Tensor, temperature: float | Tensor = 0.05
) -> Tensor:
    """A virtual copy must find its own vector among that vector's neighbours (VaSCL's equation 3).

        ℓ_i = −log  φ(z*_i, z_i) / [ φ(z*_i, z_i) + Σ_{n∈N(i)} φ(z*_i, z_n) ]

    VaSCL's perturbation makes this largest (see ``steepest``), so it is maximised over ``virtual``; the encoder is
    trained with ``contrast_with_neighbours``.
    """
    check_temperature(temperature)
    check_shapes(virtual=(virtual, "M d"), anchors=(anchors, "M d"), neighbours=(neighbours, "M k"))
    rows = torch.arange(len(virtual), device=virtual.device)
    candidates = torch.cat([rows.unsqueeze(1), neighbours], dim=1)
    scores = (unit(virtual) @ unit(anchors).T / temperature).gather(1, candidates)
    return contrast(scores, torch.zeros_like(rows))
