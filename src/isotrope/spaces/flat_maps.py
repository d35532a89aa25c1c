"""Two-dimensional maps to look at: SNE and t-SNE.

They place the points they are given and know nothing of new texts, so no encoder can come out of them: the result is a
table of points. How big a cluster is and how far it lies from others says nothing; who is near whom does.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, ClassVar, TypeVar

import numpy as np
import numpy.typing as npt

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError, nearest
from isotrope.files import written_file
from isotrope.measures.principal import principal_axes, signed_axes
from isotrope.measures.unit_vectors import unit_rows
from isotrope.methods.frame.settings import Settings, Weight, at_least
from isotrope.spaces.neighbour_descent import descend
from isotrope.spaces.space import Floats, Space, check_texts, check_vectors, space_card, vectors_of
from isotrope.training.loop_settings import Seed

METHODS = ("sne", "t-sne")
MOST = {"sne": 3000, "t-sne": 50_000}  # SNE holds a matrix of all pairs


@dataclass(frozen=True)
class MapSettings(Settings):
    """What both maps share."""

    perplexity: Annotated[
        float, at_least(1), "How many neighbours of a text count, roughly; at most a third of the other texts"
    ] = 30.0
    seed: Annotated[Seed, "Random seed of the first places"] = 42


@dataclass(frozen=True)
class SNESettings(MapSettings):
    """Those of the descent."""

    symmetric: Annotated[bool, "One distribution over all pairs in place of one for each point"] = False
    jitter: Annotated[Weight, "Standard deviation of the noise that moves the points at first; it fades; 0: none"] = 0.3


M = TypeVar("M", bound=MapSettings)


class Map(Space[M]):
    """A space without a map for new texts: ``fit`` refuses, ``points`` gives the table."""

    Settings: ClassVar[type[MapSettings]] = MapSettings

    def fit(self, encoder: Encoder, texts: Sequence[str]) -> Encoder:
        raise InputError(
            f"{self.card.name} places the texts it is given and has no map for others, so it gives no encoder: "
            "fit-space with an output map.tsv writes the points, and isotrope.spaces.flat_maps.two_dimensional "
            "returns them."
        )

    def points(self, encoder: Encoder, texts: Sequence[str]) -> Floats:
        """[n, 2], a row a text; texts that stand twice are placed once and share their point."""
        check_texts(texts)
        places = {text: number for number, text in enumerate(dict.fromkeys(texts))}
        check_perplexity(len(places), self.settings.perplexity)
        found = two_dimensional(vectors_of(encoder, list(places)), self.card.name, **asdict(self.settings))
        return found[[places[text] for text in texts]]


class SNE(Map[SNESettings]):
    """SNE: Σ_i KL(P_i ‖ Q_i) over the conditional neighbours p_{j|i} and q_{j|i} ∝ exp(−‖y_i − y_j‖²).

    By gradient descent with momentum and fading jitter. ``symmetric``: KL(P ‖ Q) over all pairs, with
    p_ij = (p_{j|i} + p_{i|j}) / 2n, the form that t-SNE began with. Points crowd in the middle in both; that is why
    t-SNE was made. Prefer ``t-sne``, unless the crowding is the subject.
    """

    Settings = SNESettings

    card = space_card(
        name="sne",
        title="Stochastic neighbour embedding",
        paper="Hinton, Roweis. Stochastic Neighbor Embedding. NIPS 2002",
        year=2002,
    )


class TSNE(Map[MapSettings]):
    """t-SNE: symmetric SNE with q_ij ∝ 1 / (1 + ‖y_i − y_j‖²), by scikit-learn."""

    card = space_card(
        name="t-sne",
        title="t-SNE",
        paper="van der Maaten, Hinton. Visualizing Data using t-SNE. JMLR 2008",
        year=2008,
    )


def two_dimensional(
    vectors: npt.ArrayLike,
    method: str = "t-sne",
    perplexity: float = 30.0,
    seed: int = 42,
    symmetric: bool = False,
    jitter: float = 0.3,
) -> Floats:
    """Points [n, 2] for vectors [n, d]: same neighbours as far as two dimensions allow. The same seed gives the same
    points.

    Distances are those of unit vectors, as cosine sees them. More than 50 dimensions are brought to 50 principal ones
    first. ``symmetric`` and ``jitter`` are those of SNE; t-SNE is symmetric always.
    """
    if method not in METHODS:
        raise InputError(f"Unknown map '{method}'{nearest(method, METHODS)}")
    cloud = np.asarray(vectors, dtype=np.float64)
    check_vectors(cloud)
    check_perplexity(len(cloud), perplexity)
    if len(cloud) > MOST[method]:
        raise InputError(f"{method} places at most {MOST[method]:,} points; {len(cloud):,} were given; take a sample.")
    narrow = _principal(unit_rows(cloud), 50)
    if method == "sne":
        return descend(narrow, perplexity, seed, symmetric, jitter)
    return t_sne_points(narrow, perplexity, seed)


def t_sne_points(vectors: Floats, perplexity: float, seed: int) -> Floats:
    """[n, 2] by scikit-learn's t-SNE, from the first two principal components.

    Nothing is checked and nothing normalised: ``two_dimensional`` does both. Vectors that are all equal have no
    principal components to begin with, and are placed at random.
    """
    from sklearn.manifold import TSNE as Fitted

    start = "pca" if np.ptp(vectors, axis=0).max() > 1e-9 else "random"
    placed = Fitted(n_components=2, perplexity=perplexity, init=start, random_state=seed).fit_transform(vectors)
    return np.asarray(placed, dtype=np.float64)


def check_table(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix != ".tsv":
        raise InputError(f"{target}: the points of a map are written as .tsv; give output a name that ends so.")
    return target


def write_points(path: Path, texts: Sequence[str], points: Floats) -> None:
    """A table with the columns text, x, y."""
    with written_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as target:
        table = csv.writer(target, dialect="excel-tab", lineterminator="\n")
        table.writerow(("text", "x", "y"))
        table.writerows((text, f"{x:.5f}", f"{y:.5f}") for text, (x, y) in zip(texts, points, strict=True))


def check_perplexity(count: int, perplexity: float) -> None:
    most = (count - 1) / 3
    if most < 1:
        raise InputError(f"A map needs at least four different texts; {count} were given.")
    if not 1 <= perplexity <= most:
        raise InputError(
            f"perplexity {perplexity:g} does not go with {count:,} texts; choose 1 to {int(most)}, or bring more texts."
        )


def _principal(vectors: Floats, dimensions: int) -> Floats:
    """The first principal dimensions, each with a fixed sign, so that a run can be repeated."""
    centred = vectors - vectors.mean(axis=0)
    axes = principal_axes(centred.T @ centred)[1][:, :dimensions]
    return np.asarray(centred @ signed_axes(axes))
