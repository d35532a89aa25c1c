"""What a cloud of vectors looks like. Each takes [n, d] and returns a scalar tensor (``spectrum``: a vector)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize


def alignment(x: Tensor, y: Tensor) -> Tensor:
    """Mean squared distance of positive pairs on the unit sphere: E ‖x − x⁺‖². 0 is perfect."""
    return (normalize(x, dim=-1) - normalize(y, dim=-1)).pow(2).sum(dim=-1).mean()


def uniformity(x: Tensor, t: float = 2.0, block: int = 2048) -> Tensor:
    """log E exp(−t ‖x − y‖²) over unordered distinct pairs on the unit sphere. Lower is more spread out.

    Computed in blocks of rows: n² distances never stand in memory at once.
    """
    unit = normalize(x, dim=-1)
    count = len(unit)
    totals = []
    for start in range(0, count, block):
        rows = unit[start : start + block]
        squared = (2 - 2 * rows @ unit[start:].T).clamp(min=0)
        exponents = (-t * squared).masked_fill(~torch.ones_like(squared, dtype=torch.bool).triu(diagonal=1), -torch.inf)
        totals.append(torch.logsumexp(exponents.flatten(), dim=0))
    pairs = torch.tensor(count * (count - 1) / 2, dtype=unit.dtype, device=unit.device)
    return torch.logsumexp(torch.stack(totals), dim=0) - pairs.log()


def anisotropy(x: Tensor) -> Tensor:
    """Mean cosine of two different vectors: 1 is a needle, 0 a ball."""
    unit = normalize(x, dim=-1)
    count = len(unit)
    return (unit.sum(dim=0).pow(2).sum() - unit.pow(2).sum()) / (count * (count - 1))


def effective_rank(x: Tensor) -> Tensor:
    """exp of the entropy of the singular values' shares: how many directions are in use."""
    values = torch.linalg.svdvals(x)
    shares = values / values.sum().clamp(min=1e-30)
    return torch.special.entr(shares).sum().exp()


def spectrum(x: Tensor) -> Tensor:
    """Singular values, largest first, divided by the largest."""
    values = torch.linalg.svdvals(x)
    return values / values[0].clamp(min=1e-30)
