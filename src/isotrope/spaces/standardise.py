"""Standardise: each dimension to mean 0 and variance 1, the plainest of BERT-flow's baselines."""

from __future__ import annotations

import numpy as np
from torch import nn

from isotrope.methods.frame.settings import Settings
from isotrope.spaces.space import Floats, LinearMap, Space, check_vectors, space_card

CONSTANT = 1e-6  # of the largest deviation


class Standardise(Space[Settings]):
    """x̃_j = (x_j − μ_j) / σ_j.

    A dimension that does not vary is centred only: dividing by its rounding noise would make it loud.
    """

    card = space_card(
        name="standardise",
        title="Standardisation",
        paper="Li, Zhou, He, Wang, Yang, Li. On the Sentence Embeddings from Pre-trained Language Models. EMNLP 2020 "
        "(a baseline there)",
        year=2020,
    )

    def fitted(self, vectors: Floats) -> nn.Module:
        check_vectors(vectors)
        deviations = vectors.std(axis=0, ddof=1)
        deviations[deviations <= CONSTANT * deviations.max()] = 1.0
        return LinearMap(vectors.mean(axis=0), np.diag(1 / deviations)).module()
