"""How well clusters agree with classes: accuracy after the best matching, and V-measure.

    accuracy  = max over one-to-one assignments π of  mean_i [π(cluster_i) = class_i]      (Hungarian algorithm)
    V-measure = harmonic mean of homogeneity (a cluster holds one class) and completeness (a class is in one cluster)

Accuracy is what papers on short texts report; a share of the commonest class is had for nothing, so read it against
that. V-measure needs no matching and is that of MTEB; it rises with the number of clusters even for random ones.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]


def matched(clusters: Numbers, classes: Numbers) -> npt.NDArray[np.bool_]:
    """[texts]: whether the class that a text's cluster was assigned is its own; both count from 0."""
    from scipy.optimize import linear_sum_assignment

    size = int(max(clusters.max(), classes.max())) + 1
    table = np.zeros((size, size), dtype=np.int64)
    np.add.at(table, (clusters, classes), 1)
    assigned = linear_sum_assignment(table, maximize=True)[1]
    return np.asarray(assigned[clusters] == classes)


def v_measure(clusters: Numbers, classes: Numbers) -> float:
    """Between 0 and 1; a single cluster has 0."""
    from sklearn.metrics import v_measure_score

    return float(v_measure_score(classes, clusters))
