"""The geometry of an array of vectors: float arrays in, floats out.

Up to ``EXACT`` rows everything is float64. Beyond, products are float32 and sums float64: the results differ by less
than 1e-5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.errors import InputError
from isotrope.measures import isotropy as geometry

EXACT = 8192
SHARES = (1, 2, 5, 10)


def alignment(x: Any, y: Any) -> float:
    """E ‖x − x⁺‖² of positive pairs (row i of ``x`` with row i of ``y``), unit vectors."""
    first, second = cloud(x, 1), cloud(y, 1)
    if first.shape != second.shape:
        raise InputError(
            f"alignment takes two arrays of one shape; {tuple(first.shape)} and {tuple(second.shape)} were given."
        )
    return float(geometry.alignment(first, second))


def uniformity(x: Any, t: float = 2.0) -> float:
    """log E exp(−t ‖x − y‖²) over distinct pairs of rows, unit vectors."""
    return float(geometry.uniformity(cloud(x, 2), t))


def anisotropy(x: Any) -> float:
    """Mean cosine of two different rows."""
    return float(geometry.anisotropy(cloud(x, 2)))


def effective_rank(x: Any) -> float:
    """exp(entropy of the singular values' shares)."""
    return float(geometry.effective_rank(cloud(x, 1)))


def spectrum(x: Any) -> list[float]:
    """Singular values, largest first, divided by the largest."""
    return [float(value) for value in geometry.spectrum(cloud(x, 1))]


def top_shares(x: Any) -> dict[str, float]:
    """Share of the variance that the first 1, 2, 5 and 10 principal components carry.

    About the mean: the spectrum is about the origin, where the first direction is mostly the mean itself.
    """
    vectors = cloud(x, 2)
    check_spread(vectors)
    variances = geometry.singular_values(vectors, vectors.mean(dim=0)).double().pow(2)
    return {str(count): float(variances[:count].sum() / variances.sum()) for count in SHARES}


def hubness(x: Any, k: int = 10, block: int = 1024) -> float:
    """Skewness of N_k, the number of rows that have a row among their k nearest by cosine (Radovanović et al. 2010).

        S = E(N_k − k)³ / σ³

    0 is even; above about 1 a few hubs are everybody's neighbours. It grows with the number of rows, so report
    that with it.
    """
    vectors = cloud(x, 2)
    if not 1 <= k < len(vectors):
        raise InputError(f"{k}-occurrence needs more than {k} vectors; {len(vectors)} were given.")
    check_spread(vectors)
    unit = torch.nn.functional.normalize(vectors, dim=-1)
    counts = torch.zeros(len(unit), dtype=torch.int64)
    for start in range(0, len(unit), block):
        scores = unit[start : start + block] @ unit.T
        own = torch.arange(len(scores))
        scores[own, own + start] = -torch.inf
        counts += torch.bincount(scores.topk(k, dim=1).indices.flatten(), minlength=len(unit))
    deviations = counts.double() - k
    return float(deviations.pow(3).mean() / deviations.pow(2).mean().pow(1.5).clamp(min=1e-30))


def cloud(x: Any, rows: int) -> torch.Tensor:
    """A checked tensor [n, d]: float64 where n is small, float32 where it is large."""
    given = np.asarray(x)
    if given.ndim != 2 or len(given) < rows:
        raise InputError(f"At least {rows} vectors in rows were expected; an array of shape {given.shape} was given.")
    array: npt.NDArray[Any] = np.ascontiguousarray(given, dtype=np.float64 if len(given) <= EXACT else np.float32)
    if not np.isfinite(array).all():
        raise InputError("The vectors hold NaN or infinite values; check the model's weights.")
    return torch.from_numpy(array)


def check_spread(vectors: torch.Tensor) -> None:
    """Refuse a cloud that is one point: it has neither components nor neighbours."""
    mean = vectors.mean(dim=0, dtype=torch.float64)
    square = float(vectors.pow(2).sum(dtype=torch.float64)) / len(vectors)
    spread = max(float((vectors - mean.to(vectors.dtype)).abs().max()), 0.0)
    if spread <= 1e-6 * square**0.5:
        raise InputError("All vectors are the same: the texts are equal, or the encoder has collapsed; train it again.")
