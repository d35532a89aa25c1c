"""Choose the penalty of a logistic regression on some texts and judge it on others: nested folds, folds and a test
part, or a dev and a test part.

With ``standardise`` each fit brings the dimensions to mean 0 and spread 1 over the rows that it learns from. The fold
that is judged is not among them, nor the fold that chooses C.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from isotrope.evaluation.logistic import fit_many

FOLDS = 10
STRENGTHS = tuple(4.0**power for power in range(-6, 2))  # C of scikit-learn


@dataclass(frozen=True)
class Outcome:
    """``found`` and ``wanted``: the classes of the judged texts. ``accuracy``: the mean over folds, as in SentEval."""

    accuracy: float
    found: Tensor
    wanted: Tensor
    strengths: list[float]


def judge(
    features: Tensor,
    labels: list[Tensor],
    rng: np.random.Generator,
    standardise: bool = False,
    strengths: Sequence[float] = STRENGTHS,
) -> Outcome:
    """``features`` are those of all parts, one after another: one part, train and test, or train, dev and test."""
    parts = features.split([len(side) for side in labels])
    if len(parts) == 1:
        return by_folds(parts[0], labels[0], rng, standardise, strengths)
    if len(parts) == 2:
        return by_test(parts[0], labels[0], parts[1], labels[1], rng, standardise, strengths)
    return by_dev(parts[0], labels[0], parts[1], labels[1], parts[2], labels[2], strengths, standardise)


def by_folds(
    features: Tensor,
    labels: Tensor,
    rng: np.random.Generator,
    standardise: bool = False,
    strengths: Sequence[float] = STRENGTHS,
) -> Outcome:
    """Nested: C of a fold is the best when another fold is left out as well, over all nine others.

    A fit without folds i and j serves both, so 45 pairs are enough for what would be 90 fits of each C.
    """
    folds = torch.from_numpy(stratified(labels.cpu().numpy(), rng)).to(labels.device)
    member = one_hot(folds, FOLDS).bool()
    pairs = list(itertools.combinations(range(FOLDS), 2))
    outside = torch.stack([~(member[:, i] | member[:, j]) for i, j in pairs], dim=1)
    right = _right(features, labels, outside, strengths, standardise)  # [rows, pairs, strengths]
    share = torch.einsum("nf,npc->fpc", member.float(), right.float()) / member.sum(dim=0)[:, None, None]
    chosen = []
    for fold in range(FOLDS):
        others = [(pair, i + j - fold) for pair, (i, j) in enumerate(pairs) if fold in (i, j)]
        chosen.append(int(torch.stack([share[other, pair] for pair, other in others]).mean(dim=0).argmax()))
    own_strengths = [strengths[place] for place in chosen]
    fits = fit_many(features, labels, ~member, torch.tensor(own_strengths, device=labels.device), standardise)
    found = fits.classes(features)
    own = found.gather(1, folds[:, None])[:, 0]
    accuracy = torch.stack([(own == labels)[member[:, fold]].float().mean() for fold in range(FOLDS)]).mean()
    return Outcome(float(accuracy), own, labels, own_strengths)


def by_test(
    learn: Tensor,
    labels: Tensor,
    judge: Tensor,
    wanted: Tensor,
    rng: np.random.Generator,
    standardise: bool = False,
    strengths: Sequence[float] = STRENGTHS,
) -> Outcome:
    """C by the mean over ten folds of the training part, then one fit on all of it."""
    folds = torch.from_numpy(stratified(labels.cpu().numpy(), rng)).to(labels.device)
    member = one_hot(folds, FOLDS).bool()
    right = _right(learn, labels, ~member, strengths, standardise)
    share = torch.einsum("nf,nfc->fc", member.float(), right.float()) / member.sum(dim=0)[:, None]
    strength = strengths[int(share.mean(dim=0).argmax())]
    whole = torch.ones(len(labels), 1, dtype=torch.bool, device=labels.device)
    fit = fit_many(learn, labels, whole, torch.tensor([strength], device=labels.device), standardise)
    found = fit.classes(judge)[:, 0]
    return Outcome(float((found == wanted).float().mean()), found, wanted, [strength])


def by_dev(
    learn: Tensor,
    labels: Tensor,
    dev: Tensor,
    dev_labels: Tensor,
    judge: Tensor,
    wanted: Tensor,
    strengths: Sequence[float] = STRENGTHS,
    standardise: bool = False,
) -> Outcome:
    """C is the best on the dev part; the fit that chose it is the one that is judged."""
    whole = torch.ones(len(labels), len(strengths), dtype=torch.bool, device=labels.device)
    fits = fit_many(learn, labels, whole, torch.tensor(strengths, device=labels.device), standardise)
    best = int((fits.classes(dev) == dev_labels[:, None]).float().mean(dim=0).argmax())
    found = fits.classes(judge)[:, best]
    return Outcome(float((found == wanted).float().mean()), found, wanted, [strengths[best]])


def stratified(labels: npt.NDArray[np.int64], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """[rows]: the fold of each. Every class is shuffled and dealt out in turn, so folds differ by one row of it."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    folds = np.empty(len(labels), dtype=np.int64)
    folds[order] = np.arange(len(labels)) % FOLDS
    return folds


def _right(features: Tensor, labels: Tensor, parts: Tensor, strengths: Sequence[float], standardise: bool) -> Tensor:
    """[rows, parts, strengths]: whether the fit on a part, with a strength, predicts the class."""
    each = torch.tensor(strengths, device=labels.device).repeat(parts.shape[1])
    fits = fit_many(features, labels, parts.repeat_interleave(len(strengths), dim=1), each, standardise)
    return (fits.classes(features) == labels[:, None]).unflatten(1, (parts.shape[1], len(strengths)))
