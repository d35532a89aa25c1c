"""A trained regressor for scored pairs: SentEval's SICK-R and STS-B.

    p = softmax(W [|u − v|; u·v] + b) over the scores 1 … 5,   predicted score = Σ_r r · p_r
    loss = (p − t)², t: a score between two whole numbers lies on both, 3.4 → (0, 0, 0.6, 0.4, 0)

Adam, batches of 64, rounds of 50 passes; the fourth round after three that did not improve Pearson on dev, counted in
all, ends it, and the best stays. As published, also for STS-B, whose scores begin at 0: what lies below 1 is put on the
score 1 with less weight than 1. It asks what a trained map finds in the vectors, not what their cosine says; the scores
of ``sts`` are the latter, and the two are not comparable (GloVe on STS-B: 64.7 and 41.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.evaluation.scored_pairs import Floats, ScoredPairs
from isotrope.evaluation.senteval_classifier import Training, adam, first_layers, with_one
from isotrope.measures.correlation import pearson, resampled_spearman, spearman
from isotrope.measures.intervals import percentile_interval

SCORES = 5
PASSES, MOST_PASSES, TENACITY = 50, 1000, 3


@dataclass(frozen=True)
class Relatedness:
    """Correlations × 100 of predicted and people's scores; ``low`` and ``high`` belong to Spearman."""

    spearman: float
    pearson: float
    low: float
    high: float
    mse: float
    pairs: int

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def soft_bins(scores: Floats) -> Floats:
    """[pairs, 5]: the weight of each whole score, as in SentEval."""
    bins = np.arange(1, SCORES + 1)
    below, part = np.floor(scores)[:, None], (scores - np.floor(scores))[:, None]
    return np.asarray(np.where(bins == below, 1 - part, np.where(bins == below + 1, part, 0.0)))


class Regressor:
    """W and b of the formula, as one layer, with PyTorch's Adam.

    The gradient is written out: a run takes tens of thousands of steps on 64 rows, and what autograd and the optimiser
    spend around them was most of its time.
    """

    def __init__(self, features: Tensor, seed: int) -> None:
        self.layer = first_layers(features.shape[1], SCORES, Training(seed=seed))[0].to(features)  # [in + 1, scores]
        self.mean, self.square = torch.zeros_like(self.layer), torch.zeros_like(self.layer)
        self.taken = 0

    def step(self, rows: Tensor, wanted: Tensor) -> None:
        """``rows`` end in a one."""
        shares = (rows @ self.layer).softmax(dim=-1)
        slope = (shares - wanted).mul_(2 / wanted.numel())
        slope.sub_((slope * shares).sum(dim=-1, keepdim=True)).mul_(shares)  # through the softmax
        self.taken += 1
        adam(self.layer, rows.T @ slope, self.mean, self.square, self.taken)

    def scores(self, features: Tensor) -> npt.NDArray[np.float64]:
        bins = torch.arange(1, SCORES + 1, device=features.device).double()
        return np.asarray(((with_one(features) @ self.layer).softmax(dim=-1).double() @ bins).cpu().numpy())


def predict_scores(features: Sequence[Tensor], train: Floats, dev: Floats, training: Training) -> Floats:
    """The predicted scores of the third part; ``features``: train, dev and test, [rows, dimensions]."""
    learn, choose, judge = features
    wanted = torch.from_numpy(soft_bins(train)).to(learn)
    orders = np.random.RandomState(training.seed)
    regressor, rows = Regressor(learn, training.seed), with_one(learn)
    best, kept, idle = -1.0, regressor.scores(judge), 0
    for _ in range(MOST_PASSES // PASSES + 1):
        for _ in range(PASSES):
            order = torch.from_numpy(orders.permutation(len(learn))).to(learn.device)
            for some, own in zip(rows[order].split(training.batch), wanted[order].split(training.batch), strict=True):
                regressor.step(some, own)
        found = float(np.nan_to_num(pearson(regressor.scores(choose), dev)))
        if found > best:
            best, kept = found, regressor.scores(judge)
        elif idle >= TENACITY:
            break
        else:
            idle += 1
    return kept


def related(found: Floats, pairs: ScoredPairs, seed: int, resamples: int) -> Relatedness:
    """What predicted scores are worth; where they never change, 0."""
    draws = resampled_spearman(found, pairs.gold, np.random.default_rng(seed), resamples)
    line, rank = (100 * float(np.nan_to_num(measure(found, pairs.gold))) for measure in (pearson, spearman))
    low, high = percentile_interval(draws).times(100)
    return Relatedness(rank, line, low, high, float(np.mean((found - pairs.gold) ** 2)), len(found))
