"""Rows of length 1, for NumPy arrays; ``objectives.vectors.unit`` is the same for tensors."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

Number = TypeVar("Number", bound=np.floating[Any])
SHORTEST = 1e-12


def unit_rows(vectors: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """x_i / ‖x_i‖ for each row, in the precision that is given; a row of zeros stays one.

    Dot products of the result are cosines. Sums over many of them deserve float64: convert before, not after.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, SHORTEST), dtype=vectors.dtype)
