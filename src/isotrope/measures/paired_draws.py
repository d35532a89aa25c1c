"""Bootstrap of items that several encoders were judged on: the same resampled rows for all of them.

    draw r: counts c_i of the items (n drawn with replacement)
    mean:       Σ c_i x_i / n
    Spearman:   Pearson of the mean ranks, each item counted c_i times

A resample is a vector of counts, so nothing is sorted again: the rank of a value is the number of drawn values below
it, and half of those equal to it. 2,000 draws of 5,000 pairs take about a second. A correlation of values that are all
alike counts as 0: they rank nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
AT_ONCE = 1 << 21  # counts in one block


def resampled_counts(items: int, resamples: int, rng: np.random.Generator) -> Iterator[Counts]:
    """Blocks [draws, items] of counts; each row sums to ``items``."""
    block = max(AT_ONCE // items, 1)
    for start in range(0, resamples, block):
        draws = min(block, resamples - start)
        rows = rng.integers(items, size=(draws, items)) + np.arange(draws)[:, None] * items
        yield np.bincount(rows.ravel(), minlength=draws * items).reshape(draws, items)


def paired_draws(values: Sequence[Floats], gold: Floats | None, resamples: int, rng: np.random.Generator) -> Floats:
    """[encoders, resamples]: the mean of each encoder's values, or their Spearman correlation with ``gold``."""
    ranked = [_Ranks(side) for side in values] if gold is not None else []
    wanted = None if gold is None else _Ranks(gold)
    blocks = []
    for counts in resampled_counts(len(values[0]), resamples, rng):
        if wanted is None:
            blocks.append(np.stack([counts @ side / len(side) for side in values]))
            continue
        right = wanted.centred(counts)
        blocks.append(np.stack([_correlation(counts, ranks.centred(counts), right) for ranks in ranked]))
    return np.concatenate(blocks, axis=1)


class _Ranks:
    """Where each item stands among the others, ties together; made once for all resamples."""

    def __init__(self, values: Floats) -> None:
        _, self.group, sizes = np.unique(values, return_inverse=True, return_counts=True)
        self.order = np.argsort(self.group, kind="stable")
        self.starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])

    def centred(self, counts: Counts) -> Floats:
        """[draws, items]: mean ranks in each resample, minus their mean."""
        totals = np.add.reduceat(counts[:, self.order], self.starts, axis=1)
        ranks = np.cumsum(totals, axis=1) - (totals - 1) / 2
        return np.asarray(ranks[:, self.group] - (counts.shape[1] + 1) / 2)


def _correlation(counts: Counts, x: Floats, y: Floats) -> Floats:
    weighted = counts * x
    norm = np.sqrt((weighted * x).sum(axis=1) * (counts * y * y).sum(axis=1))
    return np.asarray((weighted * y).sum(axis=1) / np.where(norm > 0, norm, 1.0))
