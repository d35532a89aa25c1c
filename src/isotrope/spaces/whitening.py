"""Whitening (Su et al. 2021; Huang et al. 2021): rotate to principal axes, scale each to variance 1, keep k of them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from torch import nn

from isotrope.errors import InputError
from isotrope.measures.principal import principal_axes
from isotrope.methods.frame.settings import Settings, at_least
from isotrope.spaces.space import Floats, LinearMap, Space, SpaceWarning, check_vectors, space_card

CONSTANT = 1e-9  # of the largest variance: what float32 vectors cannot distinguish from 0


@dataclass(frozen=True)
class WhiteningSettings(Settings):
    k: Annotated[
        int | None,
        at_least(1),
        "Dimensions to keep, widest first; none: all that vary. The paper keeps 256 of 768, 384 of 1024",
    ] = None
    shrinkage: Annotated[
        float | None,
        at_least(0, most=1),
        "From 0 (the covariance as it is) to 1 (a ball); none: 0, or Ledoit and Wolf's where texts are few",
    ] = None


class Whitening(Space[WhiteningSettings]):
    """x̃ = (x − μ) U Λ^{−1/2}, first k columns;  Σ = UΛUᵀ the covariance (divided by n − 1), variances descending.

    With shrinkage s the covariance is (1 − s) Σ + s · tr(Σ)/d · I. Without it the whitened texts have covariance I
    exactly.

    A mean over tokens behind a layer normalisation is constant in one direction (1/γ), whatever the text: of BERT's 768
    dimensions 767 vary. To scale the last one up to variance 1 would be to add noise, so it is left out.
    """

    card = space_card(
        name="whitening",
        title="Whitening",
        paper="Su, Cao, Liu, Ou. Whitening Sentence Representations for Better Semantics and Faster Retrieval. "
        "arXiv 2021",
        year=2021,
    )
    Settings = WhiteningSettings
    last = True

    def fitted(self, vectors: Floats) -> nn.Module:
        return self.linear(vectors).module()

    def linear(self, vectors: Floats) -> LinearMap:
        check_vectors(vectors)
        count, width = vectors.shape
        mean = vectors.mean(axis=0)
        covariance = np.cov(vectors, rowvar=False)
        shrinkage = self._shrinkage(vectors)
        covariance = (1 - shrinkage) * covariance + shrinkage * np.trace(covariance) / width * np.eye(width)
        variances, axes = principal_axes(covariance)
        usable = int((variances > CONSTANT * variances[0]).sum())
        kept = self.settings.k or usable
        if kept > usable:
            raise InputError(
                f"k is {kept}, but the vectors of {count:,} texts vary in {usable} of {width} dimensions; "
                f"choose at most {usable}."
            )
        if not self.settings.k and count <= width and not shrinkage:
            raise InputError(
                f"{count:,} texts do not show how vectors of {width} dimensions vary; bring more, "
                f"choose k below {count:,}, or leave shrinkage to isotrope."
            )
        return LinearMap(mean, axes[:, :kept] / np.sqrt(variances[:kept]))

    def _shrinkage(self, vectors: Floats) -> float:
        if self.settings.shrinkage is not None:
            return float(self.settings.shrinkage)
        count, width = vectors.shape
        if count > 2 * width:
            return 0.0
        from sklearn.covariance import ledoit_wolf_shrinkage

        found = float(ledoit_wolf_shrinkage(vectors))
        warnings.warn(
            f"{count:,} texts are few for {width} dimensions: Ledoit and Wolf shrink the covariance by {found:.2f}.",
            SpaceWarning,
            stacklevel=2,
        )
        return found
