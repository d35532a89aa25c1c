"""Protocols of classification on frozen vectors: which classifier, on which features, its penalty chosen how.

    transfer-logistic-v2   exact logistic regression on features standardised within each fit; the default
    senteval               SentEval as published: features as they are, Adam, stopped early, λ of four, seed 1111
    senteval-mlp           the same with one hidden layer of 50
    senteval-fast          exact logistic regression on features as they are

Take the default to compare encoders of this project, ``senteval`` to stand next to published numbers, ``senteval-fast``
where that takes too long. Standardising helps an encoder with short or unequal dimensions; never mix protocols in one
table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.errors import InputError, nearest
from isotrope.evaluation.folds import FOLDS, STRENGTHS, Outcome, judge
from isotrope.evaluation.linear import Labelled, numbered
from isotrope.evaluation.senteval_classifier import Training
from isotrope.evaluation.senteval_folds import NO_PENALTY, PENALTIES, judge_as_senteval, senteval_order

SEED = Training.seed
AS_THEY_ARE = tuple(8.0**power for power in range(-4, 4))  # C: large for short vectors, small for products of long ones
MANY_CLASSES = ("WC",)  # a thousand: no hidden layer, as in the paper, and no exact fit: its curvature is too large
SHORT = {"SNLI": {"epoch_size": 1, "max_epoch": 15}}


class Protocol:
    """A way to judge the features of the parts of a task, under a name with a version."""

    name: str

    def outcomes(
        self, task: str, parts: Sequence[Labelled], features: Sequence[Tensor], seeds: Sequence[int]
    ) -> list[Outcome]:
        """One for each seed; where nothing is drawn, one. The judged texts are in the order of the data."""
        raise NotImplementedError

    def words(self, seeds: Sequence[int]) -> dict[str, str]:
        """What a result says of it."""
        raise NotImplementedError


@dataclass(frozen=True)
class Exact(Protocol):
    """Logistic regression, solved to its end."""

    name: str
    standardise: bool
    strengths: tuple[float, ...]

    def outcomes(
        self, task: str, parts: Sequence[Labelled], features: Sequence[Tensor], seeds: Sequence[int]
    ) -> list[Outcome]:
        if task in MANY_CLASSES:
            return AsPublished(self.name).outcomes(task, parts, features, seeds)
        labels, rows = _numbers(parts, features), torch.cat(list(features))
        drawn = seeds if len(parts) < 3 else seeds[:1]
        return [judge(rows, labels, np.random.default_rng(seed), self.standardise, self.strengths) for seed in drawn]

    def words(self, seeds: Sequence[int]) -> dict[str, str]:
        return {
            "classifier": f"logistic regression, C of {self.strengths[0]:g} … {self.strengths[-1]:g} by inner folds "
            "or dev",
            "features": "standardised over the rows of each fit" if self.standardise else "as they are",
            "folds": _folds(seeds),
        }


@dataclass(frozen=True)
class AsPublished(Protocol):
    """SentEval's classifier, folds and grid."""

    name: str
    hidden: int = 0

    def outcomes(
        self, task: str, parts: Sequence[Labelled], features: Sequence[Tensor], seeds: Sequence[int]
    ) -> list[Outcome]:
        labels = _numbers(parts, features)
        orders = [torch.from_numpy(senteval_order(part)).to(features[0].device) for part in parts]
        rows, wanted = (
            [side[order] for side, order in zip(sides, orders, strict=True)] for sides in (features, labels)
        )
        return [_unsorted(self._judge(task, rows, wanted, seed), orders[-1]) for seed in _seeds(seeds)]

    def _judge(self, task: str, features: Sequence[Tensor], labels: Sequence[Tensor], seed: int) -> Outcome:
        training = replace(
            Training(hidden=0 if task in MANY_CLASSES else self.hidden, seed=seed), **SHORT.get(task, {})
        )
        return judge_as_senteval(features, labels, training, NO_PENALTY if task == "SNLI" else PENALTIES)

    def words(self, seeds: Sequence[int]) -> dict[str, str]:
        kind = f"one hidden layer of {self.hidden} (sigmoid)" if self.hidden else "softmax regression"
        terms = Training()
        return {
            "classifier": f"{kind}, Adam, batch {terms.batch}, tenacity {terms.tenacity}, epoch size "
            f"{terms.epoch_size}, at most {terms.max_epoch} epochs, mean loss; weight decay of {PENALTIES[0]:g} … "
            f"{PENALTIES[-1]:g} by inner folds or dev",
            "features": "as they are",
            "folds": _folds(_seeds(seeds)),
        }


DEFAULT = "transfer-logistic-v2"
PROTOCOLS: dict[str, Protocol] = {
    DEFAULT: Exact(DEFAULT, True, STRENGTHS),
    "senteval": AsPublished("senteval-v1"),
    "senteval-mlp": AsPublished("senteval-mlp-v1", hidden=50),
    "senteval-fast": Exact("senteval-fast-v1", False, AS_THEY_ARE),
}


def find_protocol(name: str | None, default: str = DEFAULT, known: Sequence[str] = tuple(PROTOCOLS)) -> Protocol:
    """By its name, with or without the version."""
    asked = name or default
    found = next((each for each in known if asked in (each, PROTOCOLS[each].name)), None)
    if found is None:
        raise InputError(f"Unknown protocol '{asked}'{nearest(asked, known)}", setting="protocol")
    return PROTOCOLS[found]


def check_features(features: Sequence[Tensor]) -> None:
    """Refuse what is not a number: a classifier of it would guess, and its score would be made up."""
    if not all(bool(side.isfinite().all()) for side in features):
        raise InputError("The encoder gives NaN or infinity for some texts; its weights are broken.")


def right_of(outcomes: Sequence[Outcome]) -> npt.NDArray[np.float64]:
    """[judged texts]: right or wrong, the mean over seeds; in the order of the data."""
    right = torch.stack([one.found == one.wanted for one in outcomes])
    return np.asarray(right.double().mean(dim=0).cpu().numpy())


def _numbers(parts: Sequence[Labelled], features: Sequence[Tensor]) -> list[Tensor]:
    """The classes as numbers."""
    check_features(features)
    return [torch.from_numpy(side).to(features[0].device) for side in numbered(*(part.labels for part in parts))]


def _seeds(seeds: Sequence[int]) -> Sequence[int]:
    """SentEval's own, unless others were asked for."""
    return (SEED,) if tuple(seeds) == (0,) else seeds


def _folds(seeds: Sequence[int]) -> str:
    return f"{FOLDS}, seed{'s' * (len(seeds) > 1)} {', '.join(map(str, seeds))}"


def _unsorted(outcome: Outcome, order: Tensor) -> Outcome:
    found, wanted = torch.empty_like(outcome.found), torch.empty_like(outcome.wanted)
    found[order], wanted[order] = outcome.found, outcome.wanted
    return replace(outcome, found=found, wanted=wanted)
