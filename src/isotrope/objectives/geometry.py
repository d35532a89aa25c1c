"""What a cloud of vectors looks like. Each takes [n, d] and returns a scalar tensor (``spectrum``: a vector).

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

    With ``most_pairs`` about that many pairs are taken where there are more, every row in about equally many; the rows must then stand
    in no order. The result is off by about the spread of one pair over the root of ``most_pairs``.
    """
    unit = normalize(x, dim=-1)
    blocks = unit.split(block)
    steps = len(blocks) // 2  # block i meets blocks i … i + steps, round the circle: each two blocks meet once
    if most_pairs is not None:
        steps = min(steps, max(math.ceil(most_pairs / (len(unit) * block)), 1))
    totals, pairs = [], 0
    for first, rows in enumerate(blocks):
        for step in range(steps + 1):
            if 2 * step == len(blocks) and 2 * first >= len(blocks):
                continue  # opposite blocks of an even circle meet from one side only
            others = blocks[(first + step) % len(blocks)]
            exponents = (2 * t * (rows @ others.T) - 2 * t).clamp(max=0)  # −t ‖x − y‖² of unit vectors
            if step == 0:
                exponents = exponents.masked_fill(~torch.ones_like(exponents, dtype=torch.bool).triu(diagonal=1), -torch.inf)
            totals.append(torch.logsumexp(exponents.flatten(), dim=0).double())
            pairs += len(rows) * (len(rows) - 1) // 2 if step == 0 else len(rows) * len(others)
    return torch.logsumexp(torch.stack(totals), dim=0) - math.log(pairs)


def anisotropy(x: Tensor) -> Tensor:
    """Mean cosine of two different vectors: 1 is a needle, 0 a ball."""
    unit = normalize(x, dim=-1)
    count = len(unit)
    return (unit.sum(dim=0, dtype=torch.float64).pow(2).sum() - unit.pow(2).sum(dtype=torch.float64)) / (count * (count - 1))


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
