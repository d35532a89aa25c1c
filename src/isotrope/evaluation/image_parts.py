"""Labelled images in the parts that the linear suite needs; an image is known by its pixels.

The suite's classifiers ask for texts, labels and the vector of each text. Here the "text" of an image is the key of its
pixels, so an image that stands in both parts is counted as one that does, and is encoded once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from isotrope.data.image_corpus import LABELLED_IMAGES, ImageCorpus, open_images
from isotrope.data.image_sources import is_image_source, open_source
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.image_encoder import ImageEncoder
from isotrope.errors import InputError
from isotrope.evaluation.labelled_parts import Parts, cut_parts
from isotrope.evaluation.linear import Labelled
from isotrope.evaluation.text_vectors import TextVectors

FEW = (0.01, 0.1)  # shares of the labels, as SimCLR's table of few labels
Place = str | os.PathLike[str]


def check_image_parts(images: Any, test: Place | None) -> None:
    """Refuse what has no labels, before a model is loaded."""
    for source in (images, test):
        if source is not None and (not is_image_source(source) or not open_source(source).labelled):
            raise InputError(f"{source}: labelled images are needed: a sub-folder a class, or labels in the file.")


def read_image_parts(encoder: Encoder, images: Any, test: Place | None, seed: int) -> tuple[Parts, TextVectors]:
    """The parts, and the vectors of all their images."""
    if not isinstance(encoder, ImageEncoder):
        raise InputError("The data are images, and the model reads text; give a model for images.")
    corpora = [open_images(one, LABELLED_IMAGES.name, encoder.size) for one in (images, test) if one is not None]
    whole = _labelled(corpora[0])
    if test is None:
        learn, judge = cut_parts(whole, seed)
        parts = Parts(learn, judge, f"a fifth of each class held out, seed {seed}")
    else:
        parts = Parts(whole, _labelled(corpora[1]), "two sources")
    names = [name for corpus in corpora for name in _names(corpus)]
    vectors = np.concatenate([encoder.encode_rows(corpus, np.arange(len(corpus))) for corpus in corpora])
    return parts, TextVectors(names, vectors)


def few_labels(parts: Parts, seed: int) -> dict[str, Parts]:
    """The same parts with 1 % and 10 % of the training labels, each class in its share and with one at least."""
    labels = np.array(parts.train.labels)
    rng = np.random.default_rng([seed, 2])
    found = {}
    for share in FEW:
        taken = [
            rng.permutation(np.flatnonzero(labels == one))[: max(round(share * int((labels == one).sum())), 1)]
            for one in np.unique(labels)
        ]
        rows = np.sort(np.concatenate(taken))
        if min(map(len, taken)) >= 2:  # one to learn from, one to choose by
            some = Labelled(([parts.train.texts[0][row] for row in rows],), [parts.train.labels[row] for row in rows])
            found[f"labels_{share:.0%}".rstrip("%")] = Parts(some, parts.test, parts.made)
    return found


def _labelled(corpus: ImageCorpus) -> Labelled:
    return Labelled((_names(corpus),), list(corpus.values))


def _names(corpus: ImageCorpus) -> list[str]:
    return [str(key) for key in corpus.keys[:, 0].tolist()]


def titles(names: Sequence[str]) -> dict[str, str]:
    return {name: f"linear, {name.removeprefix('labels_')} % of the labels" for name in names}
