"""How well scores tell classes: the share among the first k, and F1 of each class alike. Measures, not losses."""

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
    """[classes]: F1 = 2·hits / (found + wanted); nan for a class that nobody has and nobody found."""
    hits, found_of, wanted_of = (
        torch.bincount(numbers, minlength=classes) for numbers in (wanted[found == wanted], found, wanted)
    )
    return 2 * hits / (found_of + wanted_of)


def macro_f1(scores: Tensor, labels: Tensor) -> Tensor:
    """The mean F1 of the classes that somebody has or found."""
    check_shapes(scores=(scores, "n c"), labels=(labels, "n"))
    return f1_of_classes(scores.argmax(dim=1), labels, scores.shape[1]).nanmean()
