"""Many logistic regressions at once: the same vectors, other parts of them, other penalties.

    min_w  mean over the part of CE(x·w + b, label) + ‖w‖² / (2·C·n)

C is the strength of scikit-learn, n the size of the part.

The search for a penalty by cross-validation takes hundreds of fits that differ by a tenth of the data. Together they
are one product of matrices a step, for torch's L-BFGS. The vectors are turned to their principal directions, and in
each direction each problem's weight is counted in the unit in which its loss is about equally steep. This changes the
steps and not the solution: some tens instead of hundreds. Two classes have one score, as in scikit-learn; more have one
each. Standardise the vectors first (``linear.standardised``): the units are those of centred vectors, and a large
common mean slows the search down. Why not scikit-learn: docs/notes/own_code.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

from isotrope.measures.principal import principal_axes

STEEPNESS = 0.15  # of the logistic loss, p·(1 − p), where it matters; 0.25 at most
STEPS = 150
TOLERANCE = 1e-3  # of the gradient in those units: the loss is then within about its square of the least


@dataclass(frozen=True)
class Fits:
    weights: Tensor  # [dimensions, problems, scores]
    biases: Tensor  # [problems, scores]

    def classes(self, vectors: Tensor) -> Tensor:
        """[rows, problems]: the class that each problem's fit predicts for each row."""
        scores = _product(vectors, self.weights) + self.biases
        return (scores[..., 0] > 0).long() if scores.shape[-1] == 1 else scores.argmax(dim=-1)


def fit_many(vectors: Tensor, labels: Tensor, parts: Tensor, strengths: Tensor) -> Fits:
    """One fit for each column of ``parts``.

    ``vectors`` [rows, dimensions]; ``labels`` [rows], 0 …; ``parts`` [rows, problems]: bool, the rows that each problem
    learns from; ``strengths`` [problems].
    """
    classes = int(labels.max()) + 1
    outputs = 1 if classes <= 2 else classes
    dimensions, problems = vectors.shape[1], parts.shape[1]
    sizes = parts.sum(dim=0)
    share = parts / sizes
    penalty = (1 / (strengths * sizes)).to(vectors)
    variances, directions = _principal(vectors)
    turned = vectors @ directions
    units = (STEEPNESS * variances[:, None] + penalty).rsqrt()[..., None]  # [dimensions, problems, 1]
    free = vectors.new_zeros(dimensions, problems, outputs).requires_grad_()
    biases = vectors.new_zeros(problems, outputs).requires_grad_()
    solver = torch.optim.LBFGS(
        [free, biases],
        max_iter=STEPS,
        history_size=20,
        line_search_fn="strong_wolfe",
        tolerance_grad=TOLERANCE,
        tolerance_change=0,
    )
    wanted = labels[:, None]

    def closure() -> Tensor:
        solver.zero_grad()
        weights = units * free
        scores = _product(turned, weights) + biases
        if outputs == 1:
            losses = softplus(scores[..., 0]) - wanted * scores[..., 0]
        else:
            losses = scores.logsumexp(dim=-1) - scores.gather(2, wanted[..., None].expand(-1, problems, 1))[..., 0]
        loss = (share * losses).sum() + (penalty * weights.square().sum(dim=(0, 2))).sum() / 2
        loss.backward()
        return loss

    solver.step(closure)
    return Fits(_product(directions, units * free.detach()), biases.detach())


def _product(rows: Tensor, weights: Tensor) -> Tensor:
    return (rows @ weights.flatten(1)).unflatten(1, weights.shape[1:])


def _principal(vectors: Tensor) -> tuple[Tensor, Tensor]:
    """The variance along each principal direction, and the directions, a column each."""
    centred = (vectors - vectors.mean(dim=0)).double()
    variances, directions = principal_axes(centred.T @ centred / len(centred))
    return variances.clamp(min=0).to(vectors.dtype), directions.to(vectors.dtype)
