"""Search by picture: the images of a source that are nearest to another image."""

from __future__ import annotations

import os

import numpy as np

from isotrope.data.image_corpus import IMAGES, open_images
from isotrope.data.image_sources import Source
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.image_encoder import ImageEncoder
from isotrope.errors import InputError
from isotrope.search.hits import Hit


def search_images(encoder: Encoder, source: Source, query: str | os.PathLike[str], top: int = 5) -> list[Hit]:
    """The ``top`` images nearest to the image in the file ``query``: ``text`` is a name, ``line`` a place."""
    if not isinstance(encoder, ImageEncoder):
        raise InputError("The data are images, and the model reads text; give a model for images.")
    if top < 1:
        raise InputError(f"top must be at least 1; {top} was given.", setting="top")
    asked = encoder.encode(query, normalize_embeddings=True)
    corpus = open_images(source, IMAGES.name, encoder.size)
    cosines = encoder.encode_rows(corpus, np.arange(len(corpus)), normalize_embeddings=True) @ asked
    names = corpus.image_names
    nearest = np.argsort(-cosines, kind="stable")[:top]
    return [Hit(names[row], float(cosines[row]), int(row) + 1) for row in nearest]
