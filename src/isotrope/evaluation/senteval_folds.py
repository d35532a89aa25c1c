"""How SentEval chooses λ and judges: nested folds, folds and a test part, or train, dev and test.

    no split (MR, CR, SUBJ, MPQA)  outer ten folds; for each, λ by inner ten folds, then a fit on the nine that stops on
                                   5 % of them; mean accuracy of the outer folds
    train and test (TREC, MRPC)    λ by ten folds of the training part, a fit on it that stops on 5 %, the given test
    train, dev and test            λ and the stop on dev; the classifier that was best there is judged

The inner score is taken on the very rows that stopped the training: optimistic, alike for every λ. Mean scores are
rounded to two digits before λ is chosen, so the smallest of equal ones wins. Each part is put in the order of its
lengths in words, then labels, before anything is drawn. ``folds.py`` is the same without these quirks, and exact.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.evaluation.folds import FOLDS, Outcome
from isotrope.evaluation.linear import Labelled
from isotrope.evaluation.senteval_classifier import Problem, Rows, Trained, Training, train_many

PENALTIES = (1e-5, 1e-4, 1e-3, 1e-2)
NO_PENALTY = (1e-9,)  # SNLI
STOPS_ON = 0.05  # of the rows that the last fit learns from


def senteval_order(part: Labelled) -> Rows:
    """The rows by their number of words, those of the first text first, then by label."""
    lengths = [[len(text.split()) for text in side] for side in part.texts]
    keys = list(zip(*lengths, part.labels, strict=True))
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)


def judge_as_senteval(
    features: Sequence[Tensor],
    labels: Sequence[Tensor],
    training: Training,
    penalties: Sequence[float] = PENALTIES,
    folds: int = FOLDS,
) -> Outcome:
    """``features`` and ``labels``: those of each part, one to three of them, in SentEval's order."""
    if len(features) == 1:
        return _nested(features[0], labels[0], training, penalties, folds)
    if len(features) == 2:
        return _with_test(features, labels, training, penalties, folds)
    return _with_dev(features, labels, training, penalties)


def stratified_folds(labels: npt.NDArray[np.int64], folds: int, seed: int) -> npt.NDArray[np.int64]:
    """[rows]: the fold of each, by scikit-learn's StratifiedKFold with a shuffle."""
    from sklearn.model_selection import StratifiedKFold

    largest = int(np.bincount(labels).max())
    if largest < folds:
        raise InputError(f"The largest class has {largest} texts, too few for {folds} folds.")
    found = np.empty(len(labels), dtype=np.int64)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a class of fewer texts than folds is missing in some of them
        for fold, (_, rows) in enumerate(StratifiedKFold(folds, shuffle=True, random_state=seed).split(labels, labels)):
            found[rows] = fold
    return found


def _nested(features: Tensor, labels: Tensor, training: Training, penalties: Sequence[float], folds: int) -> Outcome:
    numbers, classes = labels.cpu().numpy(), int(labels.max()) + 1
    outer = stratified_folds(numbers, folds, training.seed)
    outside = [np.flatnonzero(outer != fold) for fold in range(folds)]
    inner = [problem for rows in outside for problem in _search(rows, numbers[rows], training, penalties, folds)]
    scores = np.array([one.accuracy for one in train_many(features, labels, inner, training, classes)])
    chosen = [_best(each, penalties) for each in scores.reshape(folds, len(penalties), folds)]
    last = [_held_out(rows, penalty, training) for rows, penalty in zip(outside, chosen, strict=True)]
    found, shares = torch.empty_like(labels), []
    for fold, fit in enumerate(train_many(features, labels, last, training, classes)):
        rows = torch.from_numpy(np.flatnonzero(outer == fold)).to(labels.device)
        found[rows] = fit.classes(features[rows])
        shares.append(float((found[rows] == labels[rows]).double().mean()))
    return Outcome(float(np.mean(shares)), found, labels, chosen)


def _with_test(
    features: Sequence[Tensor], labels: Sequence[Tensor], training: Training, penalties: Sequence[float], folds: int
) -> Outcome:
    numbers, classes = labels[0].cpu().numpy(), int(labels[0].max()) + 1
    rows = np.arange(len(numbers))
    problems = list(_search(rows, numbers, training, penalties, folds))
    scores = np.array([one.accuracy for one in train_many(features[0], labels[0], problems, training, classes)])
    penalty = _best(scores.reshape(len(penalties), folds), penalties)
    last = train_many(features[0], labels[0], [_held_out(rows, penalty, training)], training, classes)
    return _outcome(last[0], features[1], labels[1], penalty)


def _with_dev(
    features: Sequence[Tensor], labels: Sequence[Tensor], training: Training, penalties: Sequence[float]
) -> Outcome:
    """SentEval fits the chosen λ again, by the same seed and rows: the same classifier, so it is not done here."""
    learn, both = len(labels[0]), len(labels[0]) + len(labels[1])
    parts = np.arange(learn), np.arange(learn, both)
    problems = [Problem(*parts, penalty, np.random.RandomState(training.seed)) for penalty in penalties]
    classes = int(labels[0].max()) + 1
    found = train_many(torch.cat(list(features[:2])), torch.cat(list(labels[:2])), problems, training, classes)
    penalty = _best(np.array([[one.accuracy] for one in found]), penalties)
    return _outcome(found[list(penalties).index(penalty)], features[2], labels[2], penalty)


def _search(
    rows: Rows, labels: npt.NDArray[np.int64], training: Training, penalties: Sequence[float], folds: int
) -> list[Problem]:
    """Every λ with every fold left out."""
    inner = stratified_folds(labels, folds, training.seed)
    return [
        Problem(rows[inner != fold], rows[inner == fold], penalty, np.random.RandomState(training.seed))
        for penalty in penalties
        for fold in range(folds)
    ]


def _held_out(rows: Rows, penalty: float, training: Training) -> Problem:
    """5 % of the rows stop the training; the draw comes before the first order of the rows."""
    orders = np.random.RandomState(training.seed)
    mixed, count = rows[orders.permutation(len(rows))], int(STOPS_ON * len(rows))
    if not count:
        raise InputError(f"{len(rows)} texts are too few: 5 % of them are held out to stop the training.")
    return Problem(mixed[count:], mixed[:count], penalty, orders)


def _best(scores: npt.NDArray[np.float64], penalties: Sequence[float]) -> float:
    """``scores`` [penalties, folds]"""
    return penalties[int(np.argmax([round(100 * float(np.mean(each)), 2) for each in scores]))]


def _outcome(fit: Trained, features: Tensor, wanted: Tensor, penalty: float) -> Outcome:
    found = fit.classes(features)
    return Outcome(float((found == wanted).double().mean()), found, wanted, [penalty])
