"""Many logistic regressions at once: the same vectors, other parts of them, other penalties.

    min_{w, b}  mean over the part of CE(x·w + b, label) + Σ_d (σ_d w_d)² / (2·C·n)

C is the strength of scikit-learn, n the size of the part. σ is 1, or with ``standardise`` the spread of each dimension
over the part: the classes are then those of a fit on vectors that were standardised over the part alone, and no row
outside it moves anything. The bias has no penalty, so the mean of the vectors does not matter.

The search for a penalty by cross-validation takes hundreds of fits that differ by a tenth of the data. Together they
are one product of matrices a step, for torch's L-BFGS. The fits of one strength share the unit in which their steps are
counted (``curvature.py``); in it every fit is about equally steep in all directions, whatever the mean and the scale of
the vectors, and some twenty steps end the search. Two classes have one score, as in scikit-learn; more have one each.
Why not scikit-learn: docs/notes/own_code.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import pad

from isotrope.evaluation.curvature import Problems, product, solve

FLAT = 1e-6  # of the mean: a dimension with a smaller spread does not vary


@dataclass(frozen=True)
class Fits:
    weights: Tensor  # [dimensions, problems, scores]
    biases: Tensor  # [problems, scores]

    def classes(self, vectors: Tensor) -> Tensor:
        """[rows, problems]: the class that each problem's fit predicts for each row."""
        scores = product(vectors.to(self.weights), self.weights) + self.biases
        return (scores[..., 0] > 0).long() if scores.shape[-1] == 1 else scores.argmax(dim=-1)


def fit_many(vectors: Tensor, labels: Tensor, parts: Tensor, strengths: Tensor, standardise: bool = False) -> Fits:
    """One fit for each column of ``parts``, in double precision.

    ``vectors`` [rows, dimensions]; ``labels`` [rows], 0 …; ``parts`` [rows, problems]: bool, the rows that each problem
    learns from; ``strengths`` [problems]. A dimension that does not vary over a part is not used, if it standardises.
    """
    sizes = parts.sum(dim=0).double()
    share = parts / sizes
    mean, centred = _centred(vectors)
    scale = centred.square().mean(dim=0).sqrt()
    scale = torch.where(scale > FLAT * mean.abs(), scale, 1.0)
    rows = centred / scale
    spread, used = _spread(rows, mean / scale, share)
    if not standardise:
        spread, used = (1 / scale[:, None]).expand_as(spread), torch.ones_like(used)
    problems = Problems(
        rows=pad(rows, (0, 1), value=1.0),
        labels=labels,
        share=share,
        penalty=pad(spread.square() / (strengths.double() * sizes), (0, 0, 0, 1)),
        used=pad(used, (0, 0, 0, 1), value=1.0),
        scores=_scores(labels),
    )
    found = problems.rows.new_zeros(problems.rows.shape[1], len(strengths), problems.scores)
    near = None
    for strength in strengths.unique():  # from the smallest
        alike = (strengths == strength).nonzero()[:, 0]
        found[:, alike], near = solve(problems.of(alike), near)
    weights = found[:-1] / scale[:, None, None]
    return Fits(weights, found[-1] - torch.einsum("d,dps->ps", mean, weights))


def _scores(labels: Tensor) -> int:
    classes = int(labels.max()) + 1
    return 1 if classes <= 2 else classes


def _centred(vectors: Tensor) -> tuple[Tensor, Tensor]:
    mean = vectors.double().mean(dim=0)
    return mean, vectors.double() - mean


def _spread(rows: Tensor, offset: Tensor, share: Tensor) -> tuple[Tensor, Tensor]:
    """[dimensions, problems]: the spread over each part, and 1.0 where the dimension varies there; elsewhere 0.0."""
    mean = rows.T @ share
    spread = (rows.square().T @ share - mean.square()).clamp(min=0).sqrt()
    varies = spread > FLAT * (mean + offset[:, None]).abs()
    return torch.where(varies, spread, 1.0), varies.double()
