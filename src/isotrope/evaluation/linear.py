"""Linear evaluation: the encoder is frozen, and one logistic regression learns from its vectors.

``transfer`` and ``counterfactual`` read and prepare labelled text with the same functions.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.data.sentence_files import records_of
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.logistic import fit_many

LabelledSource = str | os.PathLike[str] | Sequence[tuple[str, str]]


class Labelled(NamedTuple):
    """``texts``: one list a column; ``labels``: one a row."""

    texts: tuple[list[str], ...]
    labels: list[str]


@dataclass(frozen=True)
class LinearAccuracy:
    """``majority``: what the commonest class of the training texts would reach; read the accuracy against it."""

    accuracy: float
    majority: float
    tested: int


def linear_accuracy(
    encoder: Encoder,
    train: LabelledSource,
    test: LabelledSource,
    strength: float = 1.0,
    standardise: bool = True,
    columns: Sequence[str] | None = None,
) -> LinearAccuracy:
    """Share of the held-out texts whose class a logistic regression on frozen vectors finds; the second stage of SupCon
    and SimCLR.

    ``train`` and ``test`` are files of labelled text, or lists of (text, label). ``strength`` is the inverse of the
    penalty, C of scikit-learn. ``standardise``: each dimension to mean 0 and variance 1, measured on ``train``. Both
    move the result: report them with it. To choose the strength, and for an interval, see ``transfer``.
    """
    if not strength > 0:
        raise InputError(f"strength must be above 0; {strength} was given.")
    learned, held = (read_labelled(source, columns) for source in (train, test))
    labels, wanted = (torch.from_numpy(side).to(encoder.device) for side in numbered(learned.labels, held.labels))
    vectors = torch.from_numpy(encoder.encode([*learned.texts[0], *held.texts[0]])).to(encoder.device)
    if standardise:
        vectors = standardised(vectors, len(labels))
    whole = torch.ones(len(labels), 1, dtype=torch.bool, device=encoder.device)
    fits = fit_many(vectors[: len(labels)], labels, whole, torch.tensor([strength], device=encoder.device))
    found = fits.classes(vectors[len(labels) :])[:, 0]
    return LinearAccuracy(
        float((found == wanted).float().mean()),
        float((wanted == labels.bincount().argmax()).float().mean()),
        len(wanted),
    )


def standardised(vectors: Tensor, seen: int) -> Tensor:
    """Each dimension to mean 0 and variance 1 over the first ``seen`` rows; one that does not vary there becomes 0."""
    spread, mean = torch.std_mean(vectors[:seen], dim=0, correction=0)
    flat = spread <= 1e-6 * mean.abs()
    return torch.where(flat, 0.0, (vectors - mean) / torch.where(flat, 1.0, spread))


def numbered(labels: Sequence[str], *judged: Sequence[str]) -> list[npt.NDArray[np.int64]]:
    """The classes as numbers, in alphabetical order: those to learn from, then those to judge by."""
    classes = sorted(set(labels))
    if len(classes) < 2:
        raise InputError(f"Every training record is labelled '{classes[0]}'; at least two classes are needed.")
    strange = sorted({label for side in judged for label in side} - set(classes))
    if strange:
        raise InputError(f"The held-out part has a class that the training part lacks: '{strange[0]}'.")
    place = {name: number for number, name in enumerate(classes)}
    return [np.array([place[label] for label in side], dtype=np.int64) for side in (labels, *judged)]


def read_labelled(
    source: LabelledSource, columns: Sequence[str] | None = None, record_type: str = "labelled"
) -> Labelled:
    """The texts of a file or list, column by column, and the labels; rows with an empty text are left out."""
    where, records = records_of(source, record_type, columns)
    full = [record for record in records if all(record.texts)]
    if not full:
        raise InputError(f"{where}: no labelled texts found.")
    empty = next((record for record in full if not record.value), None)
    if empty is not None:
        raise InputError(f"{where}:{empty.line}: the label is empty; fill it in, or take the row out.")
    columns_of_texts = zip(*(record.texts for record in full), strict=True)
    return Labelled(tuple(map(list, columns_of_texts)), [str(record.value) for record in full])
