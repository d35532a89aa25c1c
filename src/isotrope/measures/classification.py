"""How well classes are predicted: accuracy, accuracy among the first k, F1, and calibration. Measures, not losses."""

from __future__ import annotations

import torch
from torch import Tensor

from isotrope.objectives.vectors import check_shapes


def top_accuracy(scores: Tensor, labels: Tensor, among: int = 1) -> Tensor:
    """The share of rows whose class is one of the ``among`` with the highest scores.

    ``scores`` [n, classes], ``labels`` [n].
    """
    check_shapes(scores=(scores, "n c"), labels=(labels, "n"))
    best = scores.topk(min(among, scores.shape[1]), dim=1).indices
    return (best == labels.unsqueeze(1)).any(dim=1).float().mean()


def f1_of_classes(found: Tensor, wanted: Tensor, classes: int) -> Tensor:
    """[classes]: F1 = 2·hits / (found + wanted); nan for a class that is neither there nor predicted."""
    hits, found_of, wanted_of = (
        torch.bincount(numbers, minlength=classes) for numbers in (wanted[found == wanted], found, wanted)
    )
    return 2 * hits / (found_of + wanted_of)


def macro_f1(scores: Tensor, labels: Tensor) -> Tensor:
    """The mean F1 of the classes that are there or predicted. Rare classes count as much as common ones."""
    check_shapes(scores=(scores, "n c"), labels=(labels, "n"))
    return f1_of_classes(scores.argmax(dim=1), labels, scores.shape[1]).nanmean()


def majority_share(wanted: Tensor) -> Tensor:
    """The accuracy of always predicting the commonest class: what every other accuracy is to be read against."""
    return torch.bincount(wanted).max() / len(wanted)


def agreement(found: Tensor, wanted: Tensor, classes: int, positive: int) -> dict[str, Tensor]:
    """Accuracy; F1 of ``positive`` where there are two classes, else the mean F1 of all; and what the commonest class
    would reach.
    """
    each = f1_of_classes(found, wanted, classes)
    f1 = each[positive].nan_to_num() if classes == 2 else each.nanmean()
    return {"accuracy": (found == wanted).float().mean(), "f1": f1, "guess": majority_share(wanted)}


def calibration_error(confidences: Tensor, right: Tensor, bins: int = 15) -> Tensor:
    """Expected calibration error: Σ_b n_b/n · |accuracy in b − mean confidence in b| over bins of equal width.

    ``confidences`` [n]: the probability of the predicted class; ``right`` [n]: whether it was the class. 0: a
    classifier that says 70 % is right in 70 of 100 cases. It is blind to what the classifier cannot tell apart (always
    saying the class shares is calibrated), moves with ``bins``, and of few texts it is too large, since bins are noisy.
    """
    check_shapes(confidences=(confidences, "n"), right=(right, "n"))
    places = (confidences * bins).long().clamp(max=bins - 1)
    gaps = torch.zeros(bins, dtype=torch.float64, device=confidences.device)
    gaps.index_add_(0, places, right.double() - confidences.double())
    return gaps.abs().sum() / len(confidences)
