"""Unit vectors of texts for a suite, refused where they are no numbers: a broken encoder has no score."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.text_vectors import TextVectors


def sound_vectors(encoder: Encoder, texts: Iterable[str]) -> TextVectors:
    """The unit vectors of the different texts. A ranking of NaN would be that of the file, and look like a score."""
    found = TextVectors.encoded(encoder, texts, normalize=True)
    bad = np.flatnonzero(~np.isfinite(found.vectors).all(axis=1))
    if len(bad):
        raise InputError(
            f"The encoder gives vectors with NaN or infinite values for {len(bad):,} of {len(found.texts):,} texts, "
            f"such as '{found.texts[bad[0]][:60]}'; its weights are broken, and nothing was scored."
        )
    return found
