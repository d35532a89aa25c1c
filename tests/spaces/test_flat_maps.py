"""Two-dimensional maps:

neighbours stay neighbours, a seed repeats itself, perplexity is checked, the table is written whole.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.measures.unit_vectors import unit_rows
from isotrope.objectives import joint_neighbours, neighbours, sne, symmetric_sne
from isotrope.spaces.flat_maps import Map, two_dimensional
from isotrope.spaces.neighbour_descent import descend, gradient
from isotrope.spaces.space_registry import find

METHODS = ("sne", "t-sne")
FORMS = pytest.mark.parametrize("symmetric", [False, True])


def clusters(each: int = 30, width: int = 10) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(4, width))
    labels = np.repeat(np.arange(4), each)
    return centres[labels] + 0.3 * rng.normal(size=(4 * each, width)), labels


@pytest.mark.parametrize("method", METHODS)
def test_clusters_stay_together(method: str) -> None:
    vectors, labels = clusters()
    points = two_dimensional(vectors, method, perplexity=10)
    assert points.shape == (120, 2)
    distances = cdist(points, points)
    np.fill_diagonal(distances, np.inf)
    assert (labels[distances.argmin(axis=1)] == labels).mean() > 0.98


@FORMS
def test_the_descent_lowers_its_divergence_and_clusters_come_apart(symmetric: bool) -> None:
    vectors, labels = clusters()
    points = two_dimensional(vectors, "sne", perplexity=10, symmetric=symmetric)
    cloud = torch.from_numpy(unit_rows(vectors))
    loss, targets = (symmetric_sne, joint_neighbours) if symmetric else (sne, neighbours)
    first = torch.from_numpy(1e-2 * np.random.default_rng(0).normal(size=points.shape))
    before, after = (float(loss(place, targets(cloud, 10))) for place in (first, torch.from_numpy(points)))
    assert after < 0.25 * before
    groups = [points[labels == label] for label in range(4)]
    centres = np.array([group.mean(axis=0) for group in groups])
    within = np.mean([np.linalg.norm(group - group.mean(axis=0), axis=1).mean() for group in groups])
    assert cdist(centres, centres)[np.triu_indices(4, 1)].min() > 3 * within


@FORMS
def test_the_gradient_of_the_descent_is_that_of_the_objective(symmetric: bool) -> None:
    """The papers' costs are sums over the points: n times the objectives."""
    vectors = torch.from_numpy(unit_rows(clusters(each=8)[0]))
    points = torch.randn(32, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64).requires_grad_()
    loss, targets = (symmetric_sne, joint_neighbours) if symmetric else (sne, neighbours)
    near = targets(vectors, 5.0)
    (expected,) = torch.autograd.grad(32 * loss(points, near), points)
    assert torch.allclose(gradient(points.detach(), near, symmetric), expected, atol=1e-12)
    assert float(expected.abs().max()) > 0.1


@FORMS
def test_a_hub_that_everybody_pulls_does_not_swing_out(symmetric: bool) -> None:
    """With one rate for all points the descent of this cloud overflows."""
    rng = np.random.default_rng(0)
    cloud = np.vstack([np.zeros((1, 50)), rng.normal(size=(199, 50))])  # the origin is a neighbour of all
    near = (joint_neighbours if symmetric else neighbours)(torch.from_numpy(cloud), 5.0)
    points = torch.from_numpy(descend(cloud, 5.0, 0, symmetric, 0.3))
    assert float(points.abs().max()) < 10
    assert float(gradient(points, near, symmetric).abs().max()) < 0.1


def test_the_forms_place_points_differently() -> None:
    vectors, _ = clusters(each=10)
    conditional, joint = (two_dimensional(vectors, "sne", perplexity=5, symmetric=form) for form in (False, True))
    assert np.abs(conditional - joint).max() > 0.1


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_repeats_itself(method: str) -> None:
    vectors, _ = clusters(each=10)
    first, again = (two_dimensional(vectors, method, perplexity=5, seed=3) for _ in range(2))
    assert np.array_equal(first, again)


@pytest.mark.parametrize("method", METHODS)
def test_lengths_of_vectors_do_not_matter(method: str) -> None:
    vectors, _ = clusters(each=10)
    longer = vectors * np.linspace(0.5, 4, 40)[:, None]
    assert two_dimensional(longer, method, perplexity=5) == pytest.approx(
        two_dimensional(vectors, method, perplexity=5), abs=1e-2
    )


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("perplexity", [0.5, 14.0, 1000.0, float("nan")])
def test_a_perplexity_that_does_not_go_with_the_texts(method: str, perplexity: float) -> None:
    with pytest.raises(InputError, match="does not go with 40 texts; choose 1 to 13"):
        two_dimensional(clusters(each=10)[0], method, perplexity=perplexity)


def test_other_bad_input() -> None:
    vectors, _ = clusters(each=10)
    with pytest.raises(InputError, match="Unknown map 'tsne'; did you mean 't-sne'"):
        two_dimensional(vectors, "tsne")
    with pytest.raises(InputError, match="at least four different texts"):
        two_dimensional(vectors[:3], perplexity=1)
    with pytest.raises(InputError, match="at most 3,000 points"):
        two_dimensional(np.tile(vectors, (100, 1)), "sne")
    with pytest.raises(InputError, match="NaN"):
        two_dimensional(np.where(vectors > 3, np.nan, vectors))
    with pytest.raises(InputError, match="are the same"):
        two_dimensional(np.ones((40, 4)))


@pytest.mark.parametrize("method", METHODS)
def test_there_is_no_encoder_but_points(method: str, encoder: Encoder, texts: list[str]) -> None:
    with pytest.raises(InputError, match="gives no encoder"):
        isotrope.fit_space(method, encoder, texts)
    space = find(method)
    assert issubclass(space, Map)
    twice = [*texts[:60], texts[0]]
    points = space(space.Settings(perplexity=5)).points(encoder, twice)
    assert points.shape == (61, 2)
    assert np.array_equal(points[0], points[60])


def test_the_table(encoder: Encoder, tiny: Path, tmp_path: Path) -> None:
    from isotrope.api import fit_space

    lines = [f'number {number} says "salt"' for number in range(40)]
    (tmp_path / "a.txt").write_text("\n".join(lines), encoding="utf-8")
    fitted = fit_space("t-sne", tiny, tmp_path / "a.txt", tmp_path / "map.tsv", perplexity="5")
    assert fitted.texts == 40
    with open(tmp_path / "map.tsv", encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table, dialect="excel-tab"))
    assert [row["text"] for row in rows] == lines
    assert np.isfinite([[float(row["x"]), float(row["y"])] for row in rows]).all()
