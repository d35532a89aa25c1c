"""What a classifier's probabilities are worth on judged texts: top-1, top-5, calibration, each with its interval."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from isotrope.measures.classification import calibration_error, top_accuracy
from isotrope.measures.intervals import Interval, binomial_interval, percentile_interval

BINS = 15


@dataclass(frozen=True)
class ClassifierScore:
    """In per cent. ``strength``: C of a logistic regression."""

    top_1: float
    top_1_interval: Interval
    top_5: float
    top_5_interval: Interval
    calibration_error: float
    calibration_error_interval: Interval
    strength: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def score_classifier(
    probabilities: Tensor, wanted: Tensor, seed: int, resamples: int, strength: float | None = None
) -> ClassifierScore:
    """``probabilities`` [rows, classes]; ``wanted`` [rows]: the classes. The seed draws the bootstrap of the rows."""
    top_1, top_5 = (float(top_accuracy(probabilities, wanted, among)) for among in (1, 5))
    confidence, predicted = probabilities.cpu().max(dim=1)
    right = predicted == wanted.cpu()
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(len(right), (resamples, len(right)), generator=generator)
    draws = torch.stack([calibration_error(confidence[rows], right[rows], BINS) for rows in drawn])
    return ClassifierScore(
        100 * top_1,
        binomial_interval(top_1, len(right)).times(100),
        100 * top_5,
        binomial_interval(top_5, len(right)).times(100),
        100 * float(calibration_error(confidence, right, BINS)),
        percentile_interval(draws.numpy()).times(100),
        strength,
    )
