"""The geometry of an array of vectors, in float64: float arrays in, floats out."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.errors import InputError
from isotrope.objectives import geometry


def alignment(x: Any, y: Any) -> float:
    """E ‖x − x⁺‖² of positive pairs (row i of ``x`` with row i of ``y``), unit vectors."""
    first, second = _tensor(x, 1), _tensor(y, 1)
    if first.shape != second.shape:
        raise InputError(f"alignment takes two arrays of one shape; {tuple(first.shape)} and {tuple(second.shape)} were given.")
    return float(geometry.alignment(first, second))


def uniformity(x: Any, t: float = 2.0) -> float:
    """log E exp(−t ‖x − y‖²) over distinct pairs of rows, unit vectors."""
    return float(geometry.uniformity(_tensor(x, 2), t))


def anisotropy(x: Any) -> float:
    """Mean cosine of two different rows."""
    return float(geometry.anisotropy(_tensor(x, 2)))


def effective_rank(x: Any) -> float:
    """exp(entropy of the singular values' shares)."""
    return float(geometry.effective_rank(_tensor(x, 1)))


def spectrum(x: Any) -> list[float]:
    """Singular values, largest first, divided by the largest."""
    return [float(value) for value in geometry.spectrum(_tensor(x, 1))]


def _tensor(x: Any, rows: int) -> torch.Tensor:
    array: npt.NDArray[np.float64] = np.ascontiguousarray(x, dtype=np.float64)
    if np.ndim(x) != 2 or len(array) < rows:
        raise InputError(f"At least {rows} vectors in rows were expected; an array of shape {array.shape} was given.")
    if not np.isfinite(array).all():
        raise InputError("The vectors hold NaN or infinite values.")
    return torch.from_numpy(array)
