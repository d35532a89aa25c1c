"""How well a task is done: right classes, or scores that go along with the wanted ones."""

from __future__ import annotations

import torch
from torch import Tensor

from isotrope.measures.classification import f1_of_classes


def agreement(found: Tensor, wanted: Tensor, classes: int, positive: int) -> dict[str, Tensor]:
    """Accuracy; F1 of ``positive`` where there are two classes, else the mean F1 of all; and what the commonest class
    would reach.
    """
    each = f1_of_classes(found, wanted, classes)
    f1 = each[positive].nan_to_num() if classes == 2 else each.nanmean()
    return {"accuracy": (found == wanted).float().mean(), "f1": f1, "guess": torch.bincount(wanted).max() / len(wanted)}


def correlations(found: Tensor, wanted: Tensor) -> dict[str, Tensor]:
    """Pearson and Spearman; 0 where all that is found is the same."""
    from scipy.stats import rankdata

    ranks = [torch.from_numpy(rankdata(side.cpu().numpy())) for side in (found, wanted)]
    return {"pearson": _correlation(found, wanted), "spearman": _correlation(*ranks)}


def _correlation(first: Tensor, second: Tensor) -> Tensor:
    return torch.corrcoef(torch.stack([first.double(), second.double()]))[0, 1].nan_to_num(0.0).float()
