"""What a score is made of, item by item: so that two encoders can be compared on the same pairs, texts or queries.

    mean:      score = 100 · mean_i values_i                    (accuracy, nDCG, reciprocal rank)
    spearman:  score = 100 · Spearman(values, gold)             (STS: cosines against human scores)

A suite that gives the items of a task can be asked whether one encoder is really better than another on it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isotrope.measures.correlation import spearman

Values = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Items:
    """One value an item, in an order that hangs on the data alone; ``gold`` where the score is a rank correlation."""

    values: Values
    gold: Values | None = None

    def score(self, rows: npt.NDArray[np.int64] | None = None) -> float:
        """The score of all items, or of some rows (a resample); × 100."""
        values = self.values if rows is None else self.values[rows]
        if self.gold is None:
            return 100 * float(values.mean())
        return 100 * float(spearman(values, self.gold if rows is None else self.gold[rows]))

    def __len__(self) -> int:
        return len(self.values)
