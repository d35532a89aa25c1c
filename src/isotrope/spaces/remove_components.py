"""All-but-the-top (Mu and Viswanath 2018): take the mean away, and the directions that all texts share most."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from torch import nn

from isotrope.errors import InputError
from isotrope.measures.principal import principal_axes
from isotrope.methods.frame.settings import Settings, at_least
from isotrope.spaces.space import Floats, LinearMap, Space, check_vectors, space_card


@dataclass(frozen=True)
class RemoveComponentsSettings(Settings):
    components: Annotated[
        int | None,
        at_least(1),
        "Directions to take away; none: a hundredth of the dimensions, at least 1, as the paper advises",
    ] = None


class RemoveComponents(Space[RemoveComponentsSettings]):
    """x̃ = (x − μ) − Σ_{i ≤ D} ⟨u_i, x − μ⟩ u_i;  u_i the first principal directions.

    The dimension stays, the rank falls by D.
    """

    card = space_card(
        name="remove-components",
        title="All-but-the-top",
        paper="Mu, Viswanath. All-but-the-Top: Simple and Effective Postprocessing for Word Representations. ICLR 2018",
        year=2018,
    )
    Settings = RemoveComponentsSettings

    def fitted(self, vectors: Floats) -> nn.Module:
        check_vectors(vectors)
        count, width = vectors.shape
        removed = self.settings.components or max(1, round(width / 100))
        if removed >= min(count - 1, width):
            raise InputError(
                f"{removed} components cannot be taken from {count:,} texts in {width} dimensions; choose fewer."
            )
        mean = vectors.mean(axis=0)
        return LinearMap(mean, without(top_directions(vectors - mean, removed))).module()


def top_directions(vectors: Floats, count: int) -> Floats:
    """[d, count]: along them the sum of squares is largest; the vectors are taken as they are, not centred."""
    return principal_axes(vectors.T @ vectors)[1][:, :count]


def without(directions: Floats) -> Floats:
    """The projection I − UUᵀ."""
    return np.eye(len(directions)) - directions @ directions.T
