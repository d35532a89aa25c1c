"""How isotropic a cloud of vectors is. Each takes [n, d] and returns a scalar tensor (``spectrum``: a vector).

``evaluation.geometry`` has the same for float arrays, checked, as floats; these are differentiable.

Products are taken in the type that is given, sums in float64, in tiles: n² numbers never stand in memory at once.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn.functional import normalize

TRIANGLE = 8192  # rows from which singular values are taken from a triangle that is built block by block


def alignment(x: Tensor, y: Tensor) -> Tensor:
    """Mean squared distance of positive pairs on the unit sphere: E ‖x − x⁺‖². 0 is perfect."""
    return (normalize(x, dim=-1) - normalize(y, dim=-1)).pow(2).sum(dim=-1).mean()


def uniformity(x: Tensor, t: float = 2.0, block: int = 2048, most_pairs: int | None = None) -> Tensor:
    """log E exp(−t ‖x − y‖²) over unordered distinct pairs on the unit sphere. Lower is more spread out.

    With ``most_pairs`` about that many pairs are taken where there are more, every row in about equally many; the rows
    must then stand in no order. The result is off by about the spread of one pair over the root of ``most_pairs``.
    """
    unit = normalize(x, dim=-1)
    blocks = unit.split(block)
    steps = len(blocks) // 2  # block i meets blocks i … i + steps, round the circle: each two blocks meet once
    if most_pairs is not None:
        steps = min(steps, max(math.ceil(most_pairs / (len(unit) * block)), 1))
    # One buffer for all tiles: fresh ones leave holes that the next does not fit, and the process grows by gigabytes.
    room = None if unit.requires_grad else unit.new_empty(min(block, len(unit)) ** 2)
    total, pairs = unit.new_zeros((), dtype=torch.float64), 0
    for first, rows in enumerate(blocks):
        for step in range(steps + 1):
            if 2 * step == len(blocks) and 2 * first >= len(blocks):
                continue  # opposite blocks of an even circle meet from one side only
            others = blocks[(first + step) % len(blocks)]
            total = total + _close(rows, others, t, room, itself=step == 0)
            pairs += len(rows) * len(others) if step else len(rows) * (len(rows) - 1) // 2
    return total.log() - math.log(pairs)


def _close(rows: Tensor, others: Tensor, t: float, room: Tensor | None, itself: bool) -> Tensor:
    """Σ exp(−t ‖x − y‖²) of unit vectors, where ‖x − y‖² = 2 − 2 x·y; of a block with itself, each pair once."""
    place = None if room is None else room[: len(rows) * len(others)].view(len(rows), len(others))
    tile = rows @ others.T if place is None else torch.mm(rows, others.T, out=place)
    tile = tile.sub_(1).mul_(2 * t).clamp_(max=0)
    if itself:
        return tile.fill_diagonal_(-torch.inf).exp_().sum(dtype=torch.float64) / 2
    return tile.exp_().sum(dtype=torch.float64)


def anisotropy(x: Tensor) -> Tensor:
    """Mean cosine of two different vectors: 1 is a needle, 0 a ball."""
    unit = normalize(x, dim=-1)
    count = len(unit)
    return (unit.sum(dim=0, dtype=torch.float64).pow(2).sum() - unit.pow(2).sum(dtype=torch.float64)) / (
        count * (count - 1)
    )


def effective_rank(x: Tensor) -> Tensor:
    """exp of the entropy of the singular values' shares: how many directions are in use."""
    return rank_of(singular_values(x))


def spectrum(x: Tensor) -> Tensor:
    """Singular values, largest first, divided by the largest."""
    values = singular_values(x)
    return values / values[0].clamp(min=1e-30)


def rank_of(values: Tensor) -> Tensor:
    """exp(H(σ / Σσ)) of given singular values."""
    return torch.special.entr(values / values.sum().clamp(min=1e-30)).sum().exp()


def singular_values(x: Tensor, origin: Tensor | None = None) -> Tensor:
    """Of X − origin, largest first. X = QR and R has X's singular values; R is kept while blocks of rows go by."""
    shift = x.new_zeros(x.shape[1]) if origin is None else origin
    if len(x) <= TRIANGLE:
        return torch.linalg.svdvals(x - shift)
    triangle = x.new_zeros(0, x.shape[1], dtype=torch.float64)
    for rows in x.split(TRIANGLE):
        triangle = torch.linalg.qr(torch.cat([triangle, rows.double() - shift]), mode="r").R
    return torch.linalg.svdvals(triangle)
