"""How many false negatives a batch is expected to hold, from the duplicates, near-duplicates and classes of a text.

A batch of B records is drawn from n without replacement. Each of the n(n − 1)/2 pairs of records is in it with the same
probability B(B − 1)/(n(n − 1)), so by linearity of expectation, exactly and whatever the pairs have in common,

    E = P · B(B − 1) / (n(n − 1))            P: pairs of records that are no true negatives of each other

For groups of equal records (copies, near-duplicates, a class) of sizes s_g, P = Σ_g s_g(s_g − 1)/2. An anchor then has
2E/B false negatives on average. A random sample of the records gives the same E in expectation: P shrinks as n(n − 1)
does.

It says how many there are, not how much they hurt: that grows with a low temperature. Orders of batches that keep
records apart (the default one does so with exact copies) lower it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Groups = npt.NDArray[np.int64] | npt.NDArray[np.uint64]


def pairs_in(groups: npt.ArrayLike) -> int:
    """Pairs of records with the same number in ``groups``."""
    return pairs_of_sizes(np.unique(np.asarray(groups), return_counts=True)[1])


def pairs_of_sizes(sizes: npt.ArrayLike) -> int:
    """Pairs within groups of these sizes, in Python's integers: large classes have more pairs than 64 bits hold."""
    return sum(size * (size - 1) // 2 for size in np.asarray(sizes).tolist())


def pairs_sharing(groups: Groups) -> int:
    """Pairs of records that are in one group by at least one of the columns of [records, 1 or 2]."""
    columns = [np.unique(column, return_inverse=True)[1] for column in groups.T]
    single = sum(pairs_in(column) for column in columns)
    if len(columns) == 1:
        return single
    both = columns[0].astype(np.int64) * (int(columns[1].max(initial=0)) + 1) + columns[1]
    return single - pairs_in(both)


def expected_pairs(pairs: int, records: int, batch_size: int) -> float:
    """E of the formula above; a batch cannot be larger than the text."""
    size = min(batch_size, records)
    return pairs * size * (size - 1) / (records * (records - 1)) if records > 1 else 0.0
