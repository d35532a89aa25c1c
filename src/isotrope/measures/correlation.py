"""How far two lists of numbers agree: Pearson, Spearman, and Spearman over resampled pairs.

scipy computes them; it is imported inside, because loading an encoder need not wait a second for it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

Floats = npt.NDArray[np.float64]
AT_ONCE = 1 << 20  # pairs of all resamples that stand in memory


def pearson(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> float:
    """Σ (x − x̄)(y − ȳ) / √(Σ (x − x̄)² Σ (y − ȳ)²); nan where one side never changes."""
    from scipy import stats

    return float(stats.pearsonr(first, second).statistic) if _vary(first, second) else float("nan")


def spearman(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> float:
    """Pearson of the ranks, ties at their mean rank; nan where one side never changes.

    Prefer it to Pearson for cosines against people's scores: only the order of the pairs is claimed to agree.
    """
    from scipy import stats

    return float(stats.spearmanr(first, second).statistic) if _vary(first, second) else float("nan")


def resampled_spearman(first: Floats, second: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    """[resamples]: Spearman over as many pairs, drawn with replacement, some resamples together in a table.

    A resample whose pairs are all alike counts as 0. The draws, and so the result, do not hang on the size of a table.
    """
    together = max(1, AT_ONCE // max(len(second), 1))
    sizes = [min(together, resamples - start) for start in range(0, resamples, together)]
    return np.concatenate([np.empty(0), *(_resampled(first, second, rng, size) for size in sizes)])


def _resampled(first: Floats, second: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    from scipy import stats

    rows = rng.integers(0, len(second), size=(resamples, len(second)))
    x, y = (stats.rankdata(side[rows], axis=1) for side in (first, second))
    x -= x.mean(axis=1, keepdims=True)
    y -= y.mean(axis=1, keepdims=True)
    norms = np.sqrt((x**2).sum(axis=1) * (y**2).sum(axis=1))
    return np.asarray((x * y).sum(axis=1) / np.maximum(norms, 1e-12))


def correlations(found: Tensor, wanted: Tensor) -> dict[str, Tensor]:
    """Pearson and Spearman of predicted and true scores, as tensors for a log; 0 where one side never changes."""
    x, y = (side.double().cpu().numpy() for side in (found, wanted))
    values = {"pearson": pearson(x, y), "spearman": spearman(x, y)}
    return {name: torch.tensor(value).nan_to_num(0.0) for name, value in values.items()}


def _vary(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    return bool(np.ptp(first)) and bool(np.ptp(second))
