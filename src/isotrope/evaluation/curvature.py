"""The search of many logistic regressions, in units in which all of them are about equally steep.

    H = Σ_i share_i k_i ⊗ x_i x_iᵀ + penalty,  k = diag(p) − p pᵀ over the scores,  H = L Lᵀ,  w = w₀ + L^(−ᵀ) f

For each strength one reference problem, the mean over the parts, is solved first; H at its solution is the unit of the
fits of that strength, whose parts differ a little. Where H would be large (many classes), and at the start, k is cut to
its diagonal: more steps, the same solution. H is measured on evenly spaced rows and in single precision; a unit need
not be exact. The loss and its gradient are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

FIRST_STEPS, STEPS = 12, 400  # at most; a reference problem takes the first in the units of its start
TOLERANCE = 1e-6  # of the gradient; in these units it is the distance to the solution
LARGEST = 4096  # rows of H
ROWS = 8  # times the dimensions: H is measured on about so many rows


@dataclass(frozen=True)
class Problems:
    rows: Tensor  # [rows, dimensions], the last of them 1
    labels: Tensor  # [rows]
    share: Tensor  # [rows, problems]: what a row counts
    penalty: Tensor  # [dimensions, problems]
    used: Tensor  # [dimensions, problems]: 1.0, or 0.0 for a dimension that a problem may not use
    scores: int

    def loss(self, weights: Tensor) -> Tensor:
        """The sum over problems; ``weights`` [dimensions, problems, scores]."""
        found = product(self.rows, weights * self.used[..., None])
        if self.scores == 1:
            losses = softplus(found[..., 0]) - self.labels[:, None] * found[..., 0]
        else:
            wanted = self.labels[:, None, None].expand(-1, found.shape[1], 1)
            losses = found.logsumexp(dim=-1) - found.gather(2, wanted)[..., 0]
        return (self.share * losses).sum() + (self.penalty[..., None] * weights.square()).sum() / 2

    def references(self, groups: Sequence[int]) -> Problems:
        """One problem for each group of neighbouring problems: their mean."""
        share, penalty = (
            torch.stack([part.mean(dim=1) for part in side.split(list(groups), dim=1)], dim=1)
            for side in (self.share, self.penalty)
        )
        return Problems(self.rows, self.labels, share, penalty, torch.ones_like(penalty), self.scores)

    def units(self, weights: Tensor, coupled: bool) -> list[list[Tensor]]:
        """Lᵀ of each problem: a single matrix over all scores (``coupled``), or one for each score."""
        step = max(1, len(self.rows) // (ROWS * self.rows.shape[1]))
        rows, share = self.rows[::step], self.share[::step] / self.share[::step].sum(dim=0)
        found = product(rows, weights)
        chance = found.sigmoid() if self.scores == 1 else found.softmax(dim=-1)
        return [
            [_root(block) for block in self._curvature(rows.float(), share[:, each], chance[:, each], each, coupled)]
            for each in range(weights.shape[1])
        ]

    def _curvature(self, rows: Tensor, share: Tensor, chance: Tensor, problem: int, coupled: bool) -> list[Tensor]:
        def block(first: int, second: int) -> Tensor:
            slope = chance[:, first] * (float(first == second) - chance[:, second])
            inside = ((rows * (share * slope).float()[:, None]).T @ rows).double()
            return inside + torch.diag(self.penalty[:, problem]) if first == second else inside

        scores = range(self.scores)
        if not coupled:
            return [block(score, score) for score in scores]
        blocks = {(first, second): block(first, second) for first in scores for second in scores if first <= second}
        lines = [torch.cat([blocks[min(a, b), max(a, b)] for b in scores], dim=1) for a in scores]
        return [torch.cat(lines)]


def solve(problems: Problems, groups: Sequence[int]) -> Tensor:
    """[dimensions, problems, scores]. Neighbours of a group have one strength; ``groups`` are the sizes."""
    references, each = problems.references(groups), [1] * len(groups)
    coupled = problems.scores * problems.rows.shape[1] <= LARGEST
    weights = problems.rows.new_zeros(problems.rows.shape[1], len(groups), problems.scores)
    weights = _descend(references, weights, references.units(weights, False), each, FIRST_STEPS)
    weights = _descend(references, weights, references.units(weights, coupled), each, STEPS)
    start = torch.cat([weights[:, place, None].expand(-1, size, -1) for place, size in enumerate(groups)], dim=1)
    return _descend(problems, start, references.units(weights, coupled), groups, STEPS)


def product(rows: Tensor, weights: Tensor) -> Tensor:
    """[rows, problems, scores]"""
    return (rows @ weights.flatten(1)).unflatten(1, weights.shape[1:])


def _descend(problems: Problems, start: Tensor, units: list[list[Tensor]], groups: Sequence[int], steps: int) -> Tensor:
    free = torch.zeros_like(start).requires_grad_()
    solver = torch.optim.LBFGS(
        [free],
        max_iter=steps,
        max_eval=2 * steps,
        history_size=20,
        line_search_fn="strong_wolfe",
        tolerance_grad=TOLERANCE,
        tolerance_change=0,
    )

    def weights() -> Tensor:
        parts = zip(units, free.split(list(groups), dim=1), strict=True)
        return start + torch.cat([_in_units(blocks, part) for blocks, part in parts], dim=1)

    def closure() -> Tensor:
        solver.zero_grad()
        loss = problems.loss(weights())
        loss.backward()
        return loss

    solver.step(closure)
    with torch.no_grad():
        return weights() * problems.used[..., None]


def _in_units(blocks: list[Tensor], free: Tensor) -> Tensor:
    """L^(−ᵀ) times ``free`` [dimensions, problems, scores]; one L over scores and dimensions, or one for each score."""
    if len(blocks) == 1:
        flat = free.permute(2, 0, 1).flatten(0, 1)
        solved = torch.linalg.solve_triangular(blocks[0], flat, upper=True)
        return solved.unflatten(0, (free.shape[2], free.shape[0])).permute(1, 2, 0)
    each = [torch.linalg.solve_triangular(block, free[..., k], upper=True) for k, block in enumerate(blocks)]
    return torch.stack(each, dim=-1)


def _root(matrix: Tensor) -> Tensor:
    """Lᵀ of the Cholesky factor; a little is added, since scores have one direction too many."""
    raised = matrix + torch.eye(len(matrix)).to(matrix) * (1e-6 * matrix.diagonal().mean())
    return torch.linalg.cholesky(raised).T.contiguous()
