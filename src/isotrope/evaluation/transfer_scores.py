"""The scores of a transfer task over its seeds, and the average of the tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from isotrope.evaluation.folds import Outcome
from isotrope.measures.classification import f1_of_classes, majority_share
from isotrope.measures.intervals import binomial_interval, mean_share_interval


@dataclass(frozen=True)
class TaskAccuracy:
    """In per cent. ``strengths``: C of each fit; ``deviation``: over several seeds; ``f1``: of class 1, for pairs."""

    accuracy: float
    low: float
    high: float
    majority: float
    texts: int
    strengths: list[float]
    deviation: float | None = None
    f1: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


@dataclass(frozen=True)
class AverageAccuracy:
    accuracy: float
    low: float
    high: float


def summarised(outcomes: Sequence[Outcome], with_f1: bool) -> TaskAccuracy:
    """The mean over seeds. The interval is that of one seed's judged texts: each seed cuts the same texts."""
    accuracies = [outcome.accuracy for outcome in outcomes]
    accuracy, wanted = float(np.mean(accuracies)), outcomes[0].wanted
    low, high = binomial_interval(accuracy, len(wanted)).times(100)
    f1 = [float(f1_of_classes(each.found, each.wanted, 2)[1].nan_to_num()) for each in outcomes] if with_f1 else []
    return TaskAccuracy(
        accuracy=100 * accuracy,
        low=low,
        high=high,
        majority=100 * float(majority_share(wanted)),
        texts=len(wanted),
        strengths=[strength for outcome in outcomes for strength in outcome.strengths],
        deviation=100 * float(np.std(accuracies, ddof=1)) if len(accuracies) > 1 else None,
        f1=100 * float(np.mean(f1)) if f1 else None,
    )


def averaged(scores: Sequence[TaskAccuracy]) -> AverageAccuracy:
    """The mean over tasks, and its interval."""
    accuracies = [score.accuracy for score in scores]
    interval = mean_share_interval(accuracies, [score.texts for score in scores])
    return AverageAccuracy(float(np.mean(accuracies)), interval.low, interval.high)
