"""Linear evaluation: the encoder is frozen, and one linear classifier learns from its vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isotrope.data.kinds import kind_named
from isotrope.data.sources import find_records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError

Labelled = str | os.PathLike[str] | Sequence[tuple[str, str]]


@dataclass(frozen=True)
class LinearAccuracy:
    """``majority``: what the commonest class of the training texts would reach; an encoder that says nothing stands there."""

    accuracy: float
    majority: float
    tested: int


def linear_accuracy(
    encoder: Encoder, train: Labelled, test: Labelled, strength: float = 1.0, standardise: bool = True, columns: Sequence[str] | None = None
) -> LinearAccuracy:
    """Share of the held-out texts whose class a logistic regression on frozen vectors finds; the second stage of SupCon and SimCLR.

    ``train`` and ``test`` are files of labelled text, or lists of (text, label). ``strength`` is the inverse of the penalty, C of
    scikit-learn. ``standardise``: each dimension to mean 0 and spread 1, measured on ``train``. Both move the result: say them beside it.
    """
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    if not strength > 0:
        raise InputError(f"strength must be above 0; {strength} was given.")
    (texts, labels), (held, wanted) = (_read(source, columns) for source in (train, test))
    classes, counts = np.unique(labels, return_counts=True)
    if len(classes) < 2:
        raise InputError(f"Every training text is labelled '{classes[0]}'; at least two classes are needed.")
    strange = sorted(set(wanted) - set(labels))
    if strange:
        raise InputError(f"The held-out texts have a class that the training texts have not: '{strange[0]}'.")
    vectors = encoder.encode([*texts, *held])
    learner = LogisticRegression(C=strength, max_iter=1000)
    probe = make_pipeline(StandardScaler(), learner) if standardise else learner
    probe.fit(vectors[: len(texts)], labels)
    accuracy = float((probe.predict(vectors[len(texts) :]) == np.array(wanted)).mean())
    return LinearAccuracy(accuracy, float((np.array(wanted) == classes[counts.argmax()]).mean()), len(wanted))


def _read(source: Labelled, columns: Sequence[str] | None) -> tuple[list[str], list[str]]:
    kind = kind_named("labelled")
    where, _, records, _ = find_records(source, (kind.name,), columns, split=False)
    full = [record for record in records if record.texts[0]]
    if not full:
        raise InputError(f"{where}: no labelled texts found.")
    empty = next((record for record in full if not record.value), None)
    if empty is not None:
        raise InputError(f"{where}:{empty.line}: the label is empty; fill it in, or take the row out.")
    return [record.texts[0] for record in full], [str(record.value) for record in full]
