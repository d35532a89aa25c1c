"""The one equation for large batches: the scores are made tile by tile, twice, and never stand in memory together.

    T_i = log Σ_k w_ik · exp(s_ik)          forward: by tiles, joined with logaddexp
    ∂T_i/∂s_ik = w_ik · exp(s_ik − T_i)     backward: the tiles are made again, from T_i

Memory is that of the vectors and one tile; the cost is one more matrix product a tile than that of the plain form.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from isotrope.objectives.vectors import check_shapes, check_temperature, mean, unit

PLAIN = 1 << 24  # scores that stand in memory at once: up to here the plain form is taken
ROWS, COLUMNS = 1024, 4096  # of a tile


def is_large(anchors: Tensor, *candidates: Tensor) -> bool:
    """Whether so many scores are made tile by tile."""
    return len(anchors) * sum(map(len, candidates)) > PLAIN


def chunked_contrast(
    anchors: Tensor,
    candidates: Tensor,
    targets: Tensor,
    temperature: float | Tensor = 0.05,
    marked: Tensor | None = None,
    weight: float = 1.0,
) -> Tensor:
    """``contrast`` of cosines, without the matrix of scores: anchor i must find candidate ``targets[i]``.

        ℓ_i = −cos(a_i, c_t(i))/τ + log Σ_k w_ik · exp(cos(a_i, c_k)/τ)

    ``marked`` [N] names one candidate of each row whose w is ``weight``: 0 leaves it out. All other weights are 1.

    Use it for an objective of your own with tens of thousands of candidates. ``info_nce``, ``nt_xent`` and
    ``queue_nce`` take it by themselves where a batch is large. Second derivatives are not defined.
    """
    check_temperature(temperature)
    check_shapes(anchors=(anchors, "N d"), candidates=(candidates, "M d"), targets=(targets, "N"))
    if marked is not None:
        check_shapes(anchors=(anchors, "N d"), marked=(marked, "N"))
    anchors, candidates = unit(anchors), unit(candidates)
    positive = (anchors * candidates[targets]).sum(dim=-1) / temperature
    log_weight = math.log(weight) if weight > 0 else -math.inf
    return mean(log_total(anchors, candidates, temperature, Marks(marked, log_weight)) - positive)


@dataclass(frozen=True)
class Marks:
    """What differs from weight 1: one candidate of each row, or a mask [N, M] of those that are none."""

    marked: Tensor | None = None
    log_weight: float = 0.0
    left_out: Tensor | None = None

    def put(self, scores: Tensor, rows: slice, columns: slice) -> Tensor:
        """The scores of a tile with log w added, in place."""
        if self.marked is not None:
            place = self.marked[rows] - columns.start
            inside = (place >= 0) & (place < scores.shape[1])
            added = scores.new_zeros(len(place)).masked_fill_(inside, self.log_weight)
            scores.scatter_add_(1, place.clamp(0, scores.shape[1] - 1).unsqueeze(1), added.unsqueeze(1))
        if self.left_out is not None:
            scores.masked_fill_(self.left_out[rows, columns], -math.inf)
        return scores


def log_total(anchors: Tensor, candidates: Tensor, temperature: float | Tensor, marks: Marks | None = None) -> Tensor:
    """T [N] of raw dot products divided by the temperature; −inf for a row that has no candidate."""
    divisor = torch.as_tensor(temperature, dtype=anchors.dtype, device=anchors.device)
    return _log_total(anchors, candidates, divisor, marks or Marks())


def _tiles(anchors: Tensor, candidates: Tensor) -> Iterator[tuple[slice, slice]]:
    for row in range(0, len(anchors), ROWS):
        for column in range(0, len(candidates), COLUMNS):
            yield (
                slice(row, min(row + ROWS, len(anchors))),
                slice(column, min(column + COLUMNS, len(candidates))),
            )


class _LogTotal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, anchors: Tensor, candidates: Tensor, temperature: Tensor, marks: Marks) -> Tensor:
        total = anchors.new_full((len(anchors),), -math.inf)
        for rows, columns in _tiles(anchors, candidates):
            scores = marks.put((anchors[rows] / temperature) @ candidates[columns].T, rows, columns)
            total[rows] = torch.logaddexp(total[rows], torch.logsumexp(scores, dim=1))
        ctx.save_for_backward(anchors, candidates, temperature, total)
        ctx.marks = marks
        return total

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None]:
        anchors, candidates, temperature, total = ctx.saved_tensors
        finite = total.masked_fill(total == -math.inf, 0.0)  # a row without candidates has no gradient
        for_anchors, for_candidates = torch.zeros_like(anchors), torch.zeros_like(candidates)
        for rows, columns in _tiles(anchors, candidates):
            scaled = anchors[rows] / temperature
            scores = ctx.marks.put(scaled @ candidates[columns].T, rows, columns)
            share = scores.sub_(finite[rows, None]).exp_().mul_(gradient[rows, None])
            for_anchors[rows].addmm_(share, candidates[columns])
            for_candidates[columns].addmm_(share.T, scaled)
        for_anchors /= temperature
        for_temperature = -(for_anchors * anchors).sum() / temperature
        return for_anchors, for_candidates, for_temperature, None


_log_total: Callable[[Tensor, Tensor, Tensor, Marks], Tensor] = _LogTotal.apply
