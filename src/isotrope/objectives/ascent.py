"""The inner step of methods that search for the hardest vectors by gradient ascent (DCLR, VaSCL)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import normalize

from isotrope.objectives.vectors import wide


def steepest(objective: Callable[[Tensor], Tensor], vectors: Tensor) -> Tensor:
    """The unit vector along which ``objective`` grows fastest, for each row of ``vectors``.

        δ_i = g_i / ‖g_i‖,   g = ∂ objective / ∂ vectors

    Use it to make adversarial negatives or neighbours inside a step. The result carries no gradient, and parameters
    that ``objective`` uses keep the gradient they have. A row that the objective does not depend on is 0.
    """
    with torch.enable_grad():
        start = wide(vectors.detach()).requires_grad_()
        (gradient,) = torch.autograd.grad(objective(start), start)
    largest = gradient.abs().amax(dim=-1, keepdim=True)
    # First by the largest entry: squares of a saturated softmax's gradient are below what float32 holds.
    return normalize(gradient / largest.clamp(min=torch.finfo(gradient.dtype).tiny), dim=-1)
