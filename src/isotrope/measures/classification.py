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


def calibration_error(probabilities: Tensor, labels: Tensor, bins: int = 15) -> Tensor:
    """ECE = Σ_b n_b/n · |accuracy_b − confidence_b| over bins of equal width of the confidence (Guo et al. 2017).

    ``probabilities`` [n, classes] sum to 1 a row; the confidence is that of the predicted class. 0: of the texts that
    are classified with 80 % confidence, 80 % are right. It says nothing of accuracy: read both.
    """
    check_shapes(probabilities=(probabilities, "n c"), labels=(labels, "n"))
    confidence, found = probabilities.double().max(dim=1)
    bin_of = (confidence * bins).ceil().long().clamp(1, bins) - 1  # a bin holds its upper end
    gaps = confidence.new_zeros(bins).index_add_(0, bin_of, (found == labels).double() - confidence)
    return (gaps.abs().sum() / len(labels)).float()


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
