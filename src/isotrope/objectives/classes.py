"""How well scores tell classes: the share among the first k, and F1 of each class alike. Measures, not losses."""

from __future__ import annotations

import torch
from torch import Tensor

from isotrope.objectives.vectors import check_shapes


def top_accuracy(scores: Tensor, labels: Tensor, among: int = 1) -> Tensor:
    """The share of rows whose class is one of the ``among`` with the highest scores. ``scores`` [n, classes], ``labels`` [n]."""
    check_shapes(scores=(scores, "n c"), labels=(labels, "n"))
    best = scores.topk(min(among, scores.shape[1]), dim=1).indices
    return (best == labels.unsqueeze(1)).any(dim=1).float().mean()


def macro_f1(scores: Tensor, labels: Tensor) -> Tensor:
    """The mean over classes of F1 = 2·hits / (predicted + there); classes that nobody has and nobody guessed do not count."""
    check_shapes(scores=(scores, "n c"), labels=(labels, "n"))
    classes, guessed = scores.shape[1], scores.argmax(dim=1)
    hits = torch.bincount(labels[guessed == labels], minlength=classes)
    either = torch.bincount(labels, minlength=classes) + torch.bincount(guessed, minlength=classes)
    return (2 * hits[either > 0] / either[either > 0]).mean()
