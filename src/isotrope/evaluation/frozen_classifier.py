"""A logistic regression on frozen vectors of labelled parts, its penalty chosen without the test part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from isotrope.evaluation.folds import by_dev
from isotrope.evaluation.labelled_parts import Parts, drawn_dev
from isotrope.evaluation.linear import Labelled, numbered, standardised
from isotrope.evaluation.logistic import fit_many
from isotrope.evaluation.text_vectors import TextVectors

STRENGTHS = {  # C of scikit-learn, by the features; vectors as they are, often short, need a larger one
    "standardised": tuple(4.0**power for power in range(-6, 2)),
    "as_they_are": tuple(4.0**power for power in range(-2, 6)),
}


class Predicted(NamedTuple):
    probabilities: Tensor  # [test rows, classes]
    strength: float


def predict(features: str, parts: Parts, vectors: TextVectors, device: torch.device, seed: int) -> Predicted:
    """C on the dev part, or on a tenth of the training part; then a fit on the whole training part."""
    learn, dev = (parts.train, parts.dev) if parts.dev is not None else drawn_dev(parts.train, seed)
    numbers = numbered(parts.train.labels, learn.labels, dev.labels)
    labels, some, choose = (torch.from_numpy(side).to(device) for side in numbers)
    part, held = _features(features, vectors, [learn, dev], device)
    strength = by_dev(part, some, held, choose, held, choose, STRENGTHS[features]).strengths[0]
    rows, judged = _features(features, vectors, [parts.train, parts.test], device)
    whole = torch.ones(len(labels), 1, dtype=torch.bool, device=device)
    fit = fit_many(rows, labels, whole, torch.tensor([strength], device=device))
    scores = judged.double() @ fit.weights[:, 0] + fit.biases[0]
    if scores.shape[1] == 1:  # two classes have one score
        scores = torch.cat([torch.zeros_like(scores), scores], dim=1)
    return Predicted(scores.softmax(dim=1), strength)


def part_vectors(vectors: TextVectors, part: Labelled, device: torch.device) -> Tensor:
    return torch.from_numpy(vectors.of(part.texts[0])).to(device)


def _features(name: str, vectors: TextVectors, parts: Sequence[Labelled], device: torch.device) -> list[Tensor]:
    """All parts by the mean of the first and, standardised, by its spread.

    The bias has no penalty, so centring changes no solution; without it the search for one is slow.
    """
    seen = len(parts[0].labels)
    every = torch.cat([part_vectors(vectors, part, device) for part in parts])
    features = standardised(every, seen) if name == "standardised" else every - every[:seen].mean(dim=0)
    return list(features.split([len(part.labels) for part in parts]))
