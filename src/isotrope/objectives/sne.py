"""Stochastic neighbour embedding (Hinton and Roweis 2002; van der Maaten and Hinton 2008): maps that keep neighbours.

The targets are the neighbours p in the space of the vectors; the free points y are moved until their own neighbours q
agree. It is the one equation with soft targets and −‖y_i − y_j‖² as score; the entropy of p, a constant, is subtracted
so that the best value is 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives.contrast import contrast
from isotrope.objectives.vectors import check_shapes, wide


def neighbours(vectors: Tensor, perplexity: float) -> Tensor:
    """p_{j|i} [n, n]: rows sum to 1, the diagonal is 0, and every row has 2^entropy = ``perplexity``.

        p_{j|i} ∝ exp(−‖x_i − x_j‖² / 2σ_i²),   σ_i by bisection

    The targets of ``sne``; perplexity is the effective number of neighbours. A row with more equal neighbours than the
    perplexity cannot reach it: its neighbours then share the row.
    """
    check_shapes(vectors=(vectors, "n d"))
    count = len(vectors)
    if not 1 <= perplexity < count - 1:
        raise InputError(f"perplexity must lie between 1 and the other points ({count - 1}); {perplexity} was given.")
    distances = torch.cdist(vectors.double(), vectors.double()).pow(2)
    distances.fill_diagonal_(math.inf)
    distances -= distances.amin(dim=1, keepdim=True)
    spread = distances.masked_fill(distances.isinf(), 0).sum(dim=1, keepdim=True) / (count - 1)
    distances /= spread.clamp(min=1e-300)  # the unit of measure does not matter
    low, high = (torch.full((count, 1), value, dtype=torch.float64, device=vectors.device) for value in (-30.0, 60.0))
    for _ in range(100):
        middle = (low + high) / 2  # of log 1/2σ²
        too_wide = _entropy(_rows(distances, middle)) > math.log(perplexity)
        low, high = torch.where(too_wide, middle, low), torch.where(too_wide, high, middle)
    return _rows(distances, (low + high) / 2).to(wide(vectors).dtype)


def joint_neighbours(vectors: Tensor, perplexity: float) -> Tensor:
    """p_ij = (p_{j|i} + p_{i|j}) / 2n [n, n]: symmetric, sums to 1; the targets of ``symmetric_sne`` and ``t_sne``."""
    rows = neighbours(vectors, perplexity)
    return (rows + rows.T) / (2 * len(rows))


def sne(points: Tensor, targets: Tensor) -> Tensor:
    """SNE as Hinton and Roweis wrote it, with conditional probabilities: each point must have its vector's neighbours.

        L = 1/n Σ_i KL(P_i ‖ Q_i),   q_{j|i} ∝ exp(−‖y_i − y_j‖²)

    ``targets`` from ``neighbours``. Use it to study neighbourhoods point by point; maps for people come out crowded in
    the middle, and ``t_sne`` spreads them. The paper sums over i: n times this, with the gradient
    2 Σ_j (y_i − y_j)(p_{j|i} − q_{j|i} + p_{i|j} − q_{i|j}). ``symmetric_sne`` has one distribution over all pairs.
    """
    _check(points, targets, dim=1)
    scores = _scores(points)
    targets = targets.to(scores.dtype)
    return contrast(scores, targets) - _entropy(targets).mean()


def symmetric_sne(points: Tensor, targets: Tensor) -> Tensor:
    """Symmetric SNE: one distribution over all pairs.

        L = KL(P ‖ Q),   q_ij ∝ exp(−‖y_i − y_j‖²)

    ``targets`` from ``joint_neighbours``. Its gradient is simpler than that of ``sne``, and it crowds points as much.
    """
    _check(points, targets, dim=None)
    return _joint(_scores(points), targets)


def t_sne(points: Tensor, targets: Tensor) -> Tensor:
    """t-SNE: symmetric SNE with a heavy-tailed map.

        L = KL(P ‖ Q),   q_ij ∝ 1 / (1 + ‖y_i − y_j‖²)

    ``targets`` from ``joint_neighbours``. Use it for maps in two dimensions: the heavy tails let moderate distances
    grow, so clusters part. Distances between clusters mean little.
    """
    _check(points, targets, dim=None)
    return _joint(-torch.log1p(-_scores(points)), targets)


def _joint(scores: Tensor, targets: Tensor) -> Tensor:
    targets = targets.to(scores.dtype)
    return contrast(scores.flatten().unsqueeze(0), targets.flatten().unsqueeze(0)) - torch.special.entr(targets).sum()


def _scores(points: Tensor) -> Tensor:
    """−‖y_i − y_j‖²; no point is its own candidate.

    From differences, not from dot products: close points keep their distance.
    """
    points = wide(points)
    squared = (points.unsqueeze(1) - points).pow(2).sum(dim=-1)
    return (-squared).masked_fill(torch.eye(len(points), dtype=torch.bool, device=points.device), -math.inf)


def _rows(distances: Tensor, log_precision: Tensor) -> Tensor:
    return (-distances * log_precision.exp()).softmax(dim=1)


def _entropy(rows: Tensor) -> Tensor:
    return torch.special.entr(rows).sum(dim=1, keepdim=True)


def _check(points: Tensor, targets: Tensor, dim: int | None) -> None:
    check_shapes(points=(points, "n k"), targets=(targets, "n n"))
    whole = targets.double().sum(dim=dim)
    if not torch.allclose(whole, torch.ones_like(whole), atol=1e-3):
        which = (
            "targets must sum to 1, all together (joint_neighbours)"
            if dim is None
            else "targets must sum to 1 in each row (neighbours)"
        )
        raise InputError(f"{which}; {float(whole.flatten()[0]):.4g} was found.")
