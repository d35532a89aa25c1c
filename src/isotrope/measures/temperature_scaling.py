"""Temperature scaling (Guo et al. 2017): one number that makes the probabilities of a classifier mean what they say.

    T* = argmin_T  mean_i −log p_i        p = softmax(s / T), or sigmoid(s / T) for labels that may stand together

It moves no class to another rank. Fit it on rows that the classifier was not learned from: on its own training rows a
classifier looks surer than it may be. Of few rows, or where every row is right, the best T runs to an end of its range:
it is kept within [1/20, 20], and ``pseudo`` rows pull it towards 1.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar

WIDEST = 20.0
PSEUDO = 2.0  # rows whose worth of evidence says T = 1
Floats = npt.NDArray[np.float64]


def row_losses(scores: Floats, wanted: npt.NDArray[np.int64]) -> Floats:
    """[n]: −log p. ``scores`` [n, c]; ``wanted`` [n] classes, or [n, c] of 0 and 1 for labels."""
    if wanted.ndim == 2:
        return np.asarray((np.logaddexp(0.0, scores) - wanted * scores).sum(axis=1))
    highest = scores.max(axis=1)
    total = highest + np.log(np.exp(scores - highest[:, None]).sum(axis=1))
    return np.asarray(total - scores[np.arange(len(scores)), wanted])


def log_loss(scores: Floats, wanted: npt.NDArray[np.int64]) -> float:
    """The mean of ``row_losses``."""
    return float(row_losses(scores, wanted).mean())


def fit_temperature(scores: Floats, wanted: npt.NDArray[np.int64], pseudo: float = PSEUDO) -> float:
    """The temperature of the lowest log loss; 1 without rows."""
    if not len(scores):
        return 1.0
    rows = len(scores)

    def loss(logarithm: float) -> float:
        return log_loss(scores / np.exp(logarithm), wanted) + pseudo / rows * logarithm**2

    end = float(np.log(WIDEST))
    return float(np.exp(minimize_scalar(loss, bounds=(-end, end), method="bounded", options={"xatol": 1e-4}).x))
