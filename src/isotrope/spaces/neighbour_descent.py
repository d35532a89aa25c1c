"""Stochastic neighbour embedding by gradient descent with momentum (Hinton, Roweis 2002).

All points begin close to the origin. Random jitter that fades moves them out of poor arrangements, as in simulated
annealing. The gradient is the papers' closed form: one pass over the pairs, no graph of it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.objectives import joint_neighbours, neighbours
from isotrope.progress import bar

Floats = npt.NDArray[np.float64]

STEPS = 1000
RATE = 0.1
MOMENTA = (0.5, 0.8)  # in the first quarter of the steps, and after it
CALM = 0.5  # share of the steps after which nothing is jittered
NEAR = 1e-2  # standard deviation of the first places


def descend(vectors: Floats, perplexity: float, seed: int, symmetric: bool, jitter: float) -> Floats:
    """Points [n, 2] whose neighbours are those of the vectors.

        v_i ← μ v_i − η/m_i ∂C/∂y_i,   y ← y + v + ε,   ε ~ N(0, σ²), σ from ``jitter`` to 0

    m_i = ½ Σ_j (p_{j|i} + p_{i|j}), which is 1 in the mean: a point that many others pull takes shorter steps. With
    one rate for all such hubs swing out and never come back.
    Where ``symmetric`` is set, C is n times KL(P ‖ Q) over all pairs; otherwise Σ_i KL(P_i ‖ Q_i), as published.
    """
    targets: Tensor = (joint_neighbours if symmetric else neighbours)(torch.from_numpy(vectors), perplexity).float()
    generator = torch.Generator().manual_seed(seed)
    points = NEAR * torch.randn(len(vectors), 2, generator=generator)
    speed = torch.zeros_like(points)
    masses = (targets.sum(dim=0) + targets.sum(dim=1)) * (len(points) if symmetric else 1) / 2
    rates = (RATE / masses).unsqueeze(1)
    with torch.no_grad(), bar("placing the points", STEPS) as advance:
        for step in range(STEPS):
            speed = MOMENTA[step >= STEPS // 4] * speed - rates * gradient(points, targets, symmetric)
            spread = jitter * max(0.0, 1 - step / (CALM * STEPS))
            points = points + speed + spread * torch.randn(points.shape, generator=generator)
            advance(1)
    placed = points.double().numpy()
    return np.asarray(placed - placed.mean(axis=0))


def gradient(points: Tensor, targets: Tensor, symmetric: bool) -> Tensor:
    """∂C/∂y_i = 2 Σ_j (y_i − y_j)(p_{j|i} − q_{j|i} + p_{i|j} − q_{i|j}), or 4n Σ_j (y_i − y_j)(p_ij − q_ij)."""
    squares = points.pow(2).sum(dim=1)
    scores = 2 * points @ points.T - squares - squares.unsqueeze(1)  # −‖y_i − y_j‖²
    scores.fill_diagonal_(-torch.inf)
    found = scores.flatten().softmax(dim=0).view_as(scores) if symmetric else scores.softmax(dim=1)
    wrong = targets - found
    pull = 4 * len(points) * wrong if symmetric else 2 * (wrong + wrong.T)
    return pull.sum(dim=1, keepdim=True) * points - pull @ points
