"""Principal axes: the directions along which vectors vary most."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Matrix = TypeVar("Matrix", Tensor, npt.NDArray[np.float64])


def principal_axes(scatter: Matrix) -> tuple[Matrix, Matrix]:
    """Eigenvalues [d], largest first, and the axes [d, d], a column each, of a symmetric matrix.

        S = U diag(λ) Uᵀ,   S = XᵀX (about the origin), or (X − μ)ᵀ(X − μ) / (n − 1) (a covariance)

    The caller makes the matrix, because that is where PCA, uncentred PCA and a shrunk covariance differ. The sign of an
    axis is arbitrary: where a run must be repeatable elsewhere, take ``signed_axes`` of them. Only singular values are
    needed? ``isotropy.singular_values`` is exact for badly conditioned vectors, where S squares the condition number.
    """
    library: Any = torch if isinstance(scatter, Tensor) else np
    values, axes = library.linalg.eigh(scatter)
    falling = list(range(len(values)))[::-1]
    return values[falling], axes[:, falling]


def signed_axes(axes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The same axes, each turned so that its largest entry is positive."""
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return np.asarray(axes * np.sign(largest))
