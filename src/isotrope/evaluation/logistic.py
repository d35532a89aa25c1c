"""Many logistic regressions at once: the same vectors, other parts of them, other penalties.

    min_w  mean over the part of CE(x·w + b, label) + ‖w‖² / (2·C·n)        C: the strength of scikit-learn, n: the size of the part

The search for a penalty by cross-validation takes hundreds of fits that differ by a tenth of the data. Together they are one product of
matrices a step, for torch's L-BFGS. Beforehand the vectors are turned and scaled so that all directions are about equally steep, which
changes the steps and not the solution: some 40 instead of hundreds. Two classes have one score, as in scikit-learn; more have one each.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

STEEPNESS = 0.15  # of the logistic loss, p·(1 − p), where it matters; 0.25 at most
STEPS = 300
TOLERANCE = 1e-5  # of each problem's gradient, whose loss is a mean


@dataclass(frozen=True)
class Fits:
    weights: Tensor  # [dimensions, problems, scores]
    biases: Tensor  # [problems, scores]

    def classes(self, vectors: Tensor) -> Tensor:
        """Of each row and each problem the class that is found, [rows, problems]."""
        scores = _product(vectors, self.weights) + self.biases
        return (scores[..., 0] > 0).long() if scores.shape[-1] == 1 else scores.argmax(dim=-1)


def fit_many(vectors: Tensor, labels: Tensor, parts: Tensor, strengths: Tensor) -> Fits:
    """``vectors`` [rows, dimensions]; ``labels`` [rows], 0 …; ``parts`` [rows, problems]: bool, the rows that each problem has;
    ``strengths`` [problems]."""
    classes = int(labels.max()) + 1
    outputs = 1 if classes <= 2 else classes
    dimensions, problems = vectors.shape[1], parts.shape[1]
    sizes = parts.sum(dim=0)
    share = parts / sizes
    penalty = (1 / (strengths * sizes)).to(vectors)
    turn = _preconditioner(vectors, penalty)
    turned = vectors @ turn
    free = vectors.new_zeros(dimensions, problems, outputs).requires_grad_()
    biases = vectors.new_zeros(problems, outputs).requires_grad_()
    solver = torch.optim.LBFGS(
        [free, biases], max_iter=STEPS, history_size=20, line_search_fn="strong_wolfe", tolerance_grad=TOLERANCE, tolerance_change=0
    )
    wanted = labels[:, None]

    def closure() -> Tensor:
        solver.zero_grad()
        scores = _product(turned, free) + biases
        if outputs == 1:
            losses = softplus(scores[..., 0]) - wanted * scores[..., 0]
        else:
            losses = scores.logsumexp(dim=-1) - scores.gather(2, wanted[..., None].expand(-1, problems, 1))[..., 0]
        size = _product(turn, free).square().sum(dim=(0, 2))
        loss = (share * losses).sum() + (penalty * size).sum() / 2
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    solver.step(closure)  # type: ignore[no-untyped-call]
    return Fits(_product(turn, free.detach()), biases.detach())


def _product(rows: Tensor, weights: Tensor) -> Tensor:
    return (rows @ weights.flatten(1)).unflatten(1, weights.shape[1:])


def _preconditioner(vectors: Tensor, penalty: Tensor) -> Tensor:
    """P with Pᵀ·H·P = 1, where H is about the second derivative that the problems share."""
    centred = (vectors - vectors.mean(dim=0)).double()
    curvature = STEEPNESS * centred.T @ centred / len(centred)
    curvature.diagonal().add_(penalty.median())
    lower = torch.linalg.cholesky(curvature)
    unit = torch.eye(len(lower), dtype=lower.dtype, device=lower.device)
    return torch.linalg.solve_triangular(lower, unit, upper=False).T.to(vectors.dtype)
