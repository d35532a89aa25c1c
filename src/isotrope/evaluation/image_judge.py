"""The monitor of a run on images: k-NN accuracy where there are labels, and whether views find each other.

    knn        held-out images (or those of ``eval_data``) are classified by their nearest training images, in %
    views      in % of held-out images: the other view of an image is nearer than any other image's
    alignment, uniformity     of two views of an image; of all images

Nothing is chosen by it: the papers keep the last weights, and labels would be a look at the answer. Two views of an
image are drawn once, so the figures of a run are comparable.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from isotrope.data.batches import Rows
from isotrope.data.image_corpus import LABELLED_IMAGES, ImageCorpus, open_images
from isotrope.data.image_sources import open_source
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.image_encoder import ImageEncoder
from isotrope.encoders.modes import evaluating
from isotrope.errors import InputError
from isotrope.evaluation.geometry import alignment, uniformity
from isotrope.measures.neighbour_votes import NEIGHBOURS, TEMPERATURE, neighbour_votes
from isotrope.training.state import Judge, Judgement
from isotrope.views.augmentations import parse_augmentations
from isotrope.views.image_views import augmented

BANK, JUDGED = 10_000, 2_000  # images, at most: a monitor must be quick
VIEWS = 512
AUGMENTED = "supcon-small"


def make_image_judge(corpus: ImageCorpus, held: Rows, eval_data: Sequence[str | os.PathLike[str]]) -> Judge:
    """``eval_data``: labelled images to classify instead of the held-out ones."""
    labelled = corpus.record_type.value == "label"
    if eval_data and not labelled:
        raise InputError(
            "eval_data are classified by their nearest training images, which have no labels; leave it out."
        )
    for file in eval_data:  # before anything is written
        _check_classes(str(file), {label for _, label, _ in open_source(file).entries}, set(corpus.classes))
    every = np.arange(len(corpus), dtype=np.int64)
    rng = np.random.default_rng(0)
    known = np.sort(rng.permutation(np.setdiff1d(every, held) if len(held) < len(corpus) else every)[:BANK])
    others: list[ImageCorpus] = []

    def judge(encoder: Encoder) -> Judgement:
        assert isinstance(encoder, ImageEncoder)
        measures = view_measures(encoder, corpus, some(held, VIEWS))
        if not labelled:
            return Judgement(measures, "views")
        if eval_data and not others:
            others.extend(open_images(file, LABELLED_IMAGES.name, encoder.size) for file in eval_data)
        judged = [(other, some(np.arange(len(other)), JUDGED)) for other in others] or [(corpus, some(held, JUDGED))]
        found = [knn_accuracy(encoder, corpus, known, other, rows) for other, rows in judged]
        return Judgement({"knn": sum(found) / len(found), **measures}, "knn")

    return judge


def some(rows: Rows, most: int) -> Rows:
    """All of them, or ``most``, always the same ones. Images of a folder stand class by class: not the first."""
    return rows if len(rows) <= most else np.sort(np.random.default_rng(0).permutation(rows)[:most])


def knn_accuracy(encoder: ImageEncoder, corpus: ImageCorpus, known: Rows, judged: ImageCorpus, rows: Rows) -> float:
    """In %: k nearest of ``known`` vote with weight exp(cos / τ), as MoCo's monitor."""
    place = {name: number for number, name in enumerate(corpus.classes)}
    bank, queries = (
        torch.from_numpy(encoder.encode_rows(one, some)).to(encoder.device)
        for one, some in ((corpus, known), (judged, rows))
    )
    labels = torch.from_numpy(np.asarray(corpus.numbers("label")[known], dtype=np.int64)).to(encoder.device)
    renamed = np.array([place[name] for name in judged.classes], dtype=np.int64)
    wanted = torch.from_numpy(renamed[judged.numbers("label")[rows]]).to(encoder.device)
    neighbours = max(min(NEIGHBOURS, len(known) // 10), 1)
    votes = neighbour_votes(queries, bank, labels, len(place), neighbours, TEMPERATURE)
    return 100 * float((votes.argmax(dim=1) == wanted).double().mean())


def _check_classes(where: str, found: set[str | None], known: set[str]) -> None:
    if None in found:
        raise InputError(f"{where}: the images have no labels; give labelled images as eval_data, or none.")
    strange = sorted(str(name) for name in found - known)
    if strange:
        raise InputError(f"{where}: the class '{strange[0]}' is none of the training images' ({len(known)} classes).")


def view_measures(encoder: ImageEncoder, corpus: ImageCorpus, rows: Rows) -> dict[str, float]:
    """Two views of each image, always the same ones: do they find each other, how near are they?"""
    steps = parse_augmentations(AUGMENTED)
    pair = augmented(corpus, rows, [steps, steps], encoder.size, np.random.default_rng(1))
    with evaluating(encoder):
        first, second = (normalize(_in_parts(encoder, view.to(encoder.device).images()), dim=1) for view in pair)
    found = (first @ second.T).argmax(dim=1) == torch.arange(len(first), device=first.device)
    one, other = (vectors.double().cpu().numpy() for vectors in (first, second))
    return {
        "views": 100 * float(found.double().mean()),
        "alignment": alignment(one, other),
        "uniformity": uniformity(one),
    }


def _in_parts(encoder: ImageEncoder, images: Tensor) -> Tensor:
    return torch.cat([encoder(part).float() for part in images.split(128)])
