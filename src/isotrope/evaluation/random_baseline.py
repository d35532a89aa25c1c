"""Random vectors in the place of the encoder's: what a suite gives for no knowledge at all.

They are normal, of the encoder's dimension, one a text, from a fixed seed. A score near theirs is chance, whatever it
looks like; shares of few classes or few candidates are far above zero by chance alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.unit_vectors import unit_rows

TITLE = "random vectors"
SEED = 1


def random_vectors(texts: Iterable[str], dimension: int) -> TextVectors:
    """Unit vectors that hang on nothing but the number of different texts."""
    order = sorted(set(texts))
    drawn = np.random.default_rng(SEED).normal(size=(len(order), dimension))
    return TextVectors(order, unit_rows(drawn).astype(np.float32))


def described(dimension: int) -> str:
    return f"normal, {dimension} dimensions, seed {SEED}"
