"""Linear evaluation: the encoder is frozen, and one linear classifier learns from its vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from isotrope.data.record_types import record_type_named
from isotrope.data.sources import find_records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.logistic import fit_many

Labelled = str | os.PathLike[str] | Sequence[tuple[str, str]]
Texts = tuple[list[str], ...]  # one list a column


@dataclass(frozen=True)
class LinearAccuracy:
    """``majority``:

    what the commonest class of the training texts would reach; an encoder that says nothing stands there.
    """

    accuracy: float
    majority: float
    tested: int


def linear_accuracy(
    encoder: Encoder,
    train: Labelled,
    test: Labelled,
    strength: float = 1.0,
    standardise: bool = True,
    columns: Sequence[str] | None = None,
) -> LinearAccuracy:
    """Share of the held-out texts whose class a logistic regression on frozen vectors finds; the second stage of SupCon
    and SimCLR.

    ``train`` and ``test`` are files of labelled text, or lists of (text, label). ``strength`` is the inverse of the
    penalty, C of scikit-learn. ``standardise``: each dimension to mean 0 and spread 1, measured on ``train``. Both move
    the result: say them beside it.
    """
    if not strength > 0:
        raise InputError(f"strength must be above 0; {strength} was given.")
    ((texts,), labels), ((held,), wanted) = (read_labelled(source, columns) for source in (train, test))
    numbers = numbered(labels, wanted)
    vectors = torch.from_numpy(encoder.encode([*texts, *held])).to(encoder.device)
    if standardise:
        vectors = standardised(vectors, len(texts))
    seen, (learned, tested) = len(texts), (torch.from_numpy(side).to(encoder.device) for side in numbers)
    whole = torch.ones(seen, 1, dtype=torch.bool, device=encoder.device)
    found = fit_many(vectors[:seen], learned, whole, torch.tensor([strength], device=encoder.device)).classes(
        vectors[seen:]
    )[:, 0]
    return LinearAccuracy(
        float((found == tested).float().mean()),
        float((tested == learned.bincount().argmax()).float().mean()),
        len(held),
    )


def standardised(vectors: Tensor, seen: int) -> Tensor:
    """Each dimension to mean 0 and spread 1 over the first ``seen`` rows; one that does not vary there becomes 0."""
    spread, mean = torch.std_mean(vectors[:seen], dim=0, correction=0)
    flat = spread <= 1e-6 * mean.abs()
    return torch.where(flat, 0.0, (vectors - mean) / torch.where(flat, 1.0, spread))


def numbered(labels: Sequence[str], *judged: Sequence[str]) -> list[npt.NDArray[np.int64]]:
    """The classes as numbers, by name: those to learn from, then those to judge by."""
    classes = sorted(set(labels))
    if len(classes) < 2:
        raise InputError(f"Every training text is labelled '{classes[0]}'; at least two classes are needed.")
    strange = sorted({label for side in judged for label in side} - set(classes))
    if strange:
        raise InputError(f"The held-out texts have a class that the training texts have not: '{strange[0]}'.")
    place = {name: number for number, name in enumerate(classes)}
    return [np.array([place[label] for label in side], dtype=np.int64) for side in (labels, *judged)]


def read_labelled(
    source: Labelled, columns: Sequence[str] | None = None, kind: str = "labelled"
) -> tuple[Texts, list[str]]:
    """The texts of a file or list, column by column, and the labels; rows with an empty text are left out."""
    where, _, records, _ = find_records(source, (record_type_named(kind).name,), columns, split=False)
    full = [record for record in records if all(record.texts)]
    if not full:
        raise InputError(f"{where}: no labelled texts found.")
    empty = next((record for record in full if not record.value), None)
    if empty is not None:
        raise InputError(f"{where}:{empty.line}: the label is empty; fill it in, or take the row out.")
    return tuple(map(list, zip(*(record.texts for record in full), strict=True))), [
        str(record.value) for record in full
    ]
