"""The search of many logistic regressions, in units in which all of them are about equally steep.

    H = Σ_i share_i k_i ⊗ x_i x_iᵀ + penalty,  k = diag(p) − p pᵀ over the scores,  H = L Lᵀ,  w = w₀ + L^(−ᵀ) f

For each strength one reference problem, the mean over the parts, is solved first; H at its solution is the unit of the
fits of that strength, whose parts differ a little, and the start of the next strength. Where H would be large (many
classes or dimensions), and at the very start, k is replaced by its mean over the rows, K = Q diag(κ) Qᵀ: then
H = Σ_j q_j q_jᵀ ⊗ (κ_j Σ_i share_i x_i x_iᵀ + penalty) falls into a block for each j. More steps, the same solution.
H is measured on evenly spaced
rows and, on a CPU, in single precision; a unit need not be exact. The loss and its gradient are. A search that leaves
the numbers is made again from nothing, in units of the diagonal; if that fails too, there is an error and no score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import softplus

from isotrope.errors import InputError

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

    def of(self, chosen: Tensor) -> Problems:
        """Some of the problems."""
        share, penalty, used = (side[:, chosen] for side in (self.share, self.penalty, self.used))
        return Problems(self.rows, self.labels, share, penalty, used, self.scores)

    def reference(self) -> Problems:
        """A single problem, the mean of all."""
        share, penalty = (side.mean(dim=1, keepdim=True) for side in (self.share, self.penalty))
        return Problems(self.rows, self.labels, share, penalty, torch.ones_like(penalty), self.scores)

    def unit(self, weights: Tensor, coupled: bool) -> Unit:
        """That of the first problem, at ``weights``; ``coupled``: with k row by row."""
        step = max(1, len(self.rows) // (ROWS * self.rows.shape[1]))
        rows, share = self.rows[::step], self.share[::step, 0]
        found = product(rows, weights)[:, 0]
        chance = found.sigmoid() if self.scores == 1 else found.softmax(dim=-1)
        # A GPU may round products of single precision to ten bits (TF32), which is too little here.
        measured = rows.float() if rows.device.type == "cpu" else rows
        share = share / share.sum()
        if coupled or self.scores == 1:
            return Unit([_root(self._curvature(measured, share, chance))])
        spread = torch.diag(share @ chance) - (chance * share[:, None]).T @ chance  # K
        sizes, turn = torch.linalg.eigh(spread.nan_to_num())  # of rows that are no numbers ``solve`` sees the end
        inside, penalty = _weighted(measured, share), torch.diag(self.penalty[:, 0])
        return Unit([_root(float(size.clamp(min=0)) * inside + penalty) for size in sizes], turn)

    def _curvature(self, rows: Tensor, share: Tensor, chance: Tensor) -> Tensor:
        def block(first: int, second: int) -> Tensor:
            inside = _weighted(rows, share * chance[:, first] * (float(first == second) - chance[:, second]))
            return inside + torch.diag(self.penalty[:, 0]) if first == second else inside

        scores = range(self.scores)
        blocks = {(first, second): block(first, second) for first in scores for second in scores if first <= second}
        lines = [torch.cat([blocks[min(a, b), max(a, b)] for b in scores], dim=1) for a in scores]
        return torch.cat(lines)


@dataclass(frozen=True)
class Unit:
    """Lᵀ of H: a single matrix over all scores, or one for each column of ``turn``, Q [scores, scores]."""

    blocks: list[Tensor]
    turn: Tensor | None = None

    def weights(self, free: Tensor) -> Tensor:
        """L^(−ᵀ) times ``free`` [dimensions, problems, scores]."""
        if self.turn is None:
            flat = free.permute(2, 0, 1).flatten(0, 1)
            solved = torch.linalg.solve_triangular(self.blocks[0], flat, upper=True)
            return solved.unflatten(0, (free.shape[2], free.shape[0])).permute(1, 2, 0)
        each = [torch.linalg.solve_triangular(one, free[..., k], upper=True) for k, one in enumerate(self.blocks)]
        return torch.stack(each, dim=-1) @ self.turn.T


class Reference(NamedTuple):
    """A reference problem that is solved: its weights [dimensions, 1, scores], and the unit there."""

    weights: Tensor
    unit: Unit


def solve(problems: Problems, near: Reference | None) -> tuple[Tensor, Reference | None]:
    """[dimensions, problems, scores], for problems of one strength; ``near``: the reference of a like strength."""
    weights, found = _searched(problems, near)
    if weights.isfinite().all():
        return weights, found
    nothing = torch.zeros_like(weights)
    diagonal = torch.diag(_diagonal(problems).sqrt())
    plain = Unit([diagonal] * problems.scores, torch.eye(problems.scores).to(diagonal))
    weights = _descend(problems, nothing, plain, STEPS)
    if not weights.isfinite().all():
        raise InputError("A logistic regression on these vectors does not converge; are they of a usable size?")
    return weights, None  # the next strength begins from nothing too


def _diagonal(problems: Problems) -> Tensor:
    """Of H for equal chances and the mean of the problems."""
    classes = max(problems.scores, 2)
    spread = (problems.share.mean(dim=1)[:, None] * problems.rows.square()).sum(dim=0)
    return spread * (classes - 1) / classes**2 + problems.penalty.mean(dim=1) + 1e-12


def _searched(problems: Problems, near: Reference | None) -> tuple[Tensor, Reference]:
    mean, coupled = problems.reference(), problems.scores * problems.rows.shape[1] <= LARGEST
    if near is None:
        weights = problems.rows.new_zeros(problems.rows.shape[1], 1, problems.scores)
        weights = _descend(mean, weights, mean.unit(weights, False), FIRST_STEPS)
        near = Reference(weights, mean.unit(weights, coupled))
    weights = _descend(mean, near.weights, near.unit, STEPS)
    found = Reference(weights, mean.unit(weights, coupled))
    return _descend(problems, weights.expand(-1, problems.share.shape[1], -1), found.unit, STEPS), found


def product(rows: Tensor, weights: Tensor) -> Tensor:
    """[rows, problems, scores]"""
    return (rows @ weights.flatten(1)).unflatten(1, weights.shape[1:])


def _descend(problems: Problems, start: Tensor, unit: Unit, steps: int) -> Tensor:
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
        return start + unit.weights(free)

    def closure() -> Tensor:
        solver.zero_grad()
        loss = problems.loss(weights())
        loss.backward()
        return loss

    solver.step(closure)
    with torch.no_grad():
        found = weights() * problems.used[..., None]
        # What all scores share changes no probability, and the penalty is least without it.
        return found - found.mean(dim=-1, keepdim=True) if problems.scores > 1 else found


def _weighted(rows: Tensor, share: Tensor) -> Tensor:
    """[dimensions, dimensions]: Σ_i share_i x_i x_iᵀ"""
    return ((rows * share.to(rows)[:, None]).T @ rows).double()


def _root(matrix: Tensor) -> Tensor:
    """Lᵀ of the Cholesky factor. A little is added, since scores have one direction too many; more where products of
    lower precision (TF32) made the matrix indefinite, which costs steps and changes no solution."""
    raised, added = matrix, torch.eye(len(matrix)).to(matrix) * (1e-6 * matrix.diagonal().mean())
    for _ in range(8):
        raised = raised + added
        root, failed = torch.linalg.cholesky_ex(raised)
        if not failed:
            break
        added = added * 10
    return root.T.contiguous()
