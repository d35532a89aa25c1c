"""Whitening, component removal, standardisation: golden values, the laws of the papers, few texts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import isotrope
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.stock_parts import Normalize
from isotrope.errors import InputError
from isotrope.spaces.remove_components import RemoveComponents
from isotrope.spaces.space import SpaceWarning
from isotrope.spaces.standardise import Standardise
from isotrope.spaces.whitening import Whitening

SQUARE = np.array([[2.0, 0], [-2, 0], [0, 1], [0, -1]])


def whitened(vectors: np.ndarray, fitted_to: np.ndarray | None = None, **settings: object) -> np.ndarray:
    found = Whitening(Whitening.Settings(**settings)).linear(vectors if fitted_to is None else fitted_to)
    return (vectors - found.mean) @ found.columns


def cloud(count: int = 500, width: int = 8, seed: int = 0) -> np.ndarray:
    """Correlated, and far from the origin."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, width)) @ rng.normal(size=(width, width)) + 5


def cosines(vectors: np.ndarray) -> np.ndarray:
    units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return units @ units.T


def test_the_golden_square() -> None:
    """Covariance diag(8/3, 2/3); the whitened points lie at ±1.224745 on both axes."""
    found = whitened(SQUARE, shrinkage=0.0)
    assert np.abs(found) == pytest.approx(
        np.array([[1.224745, 0], [1.224745, 0], [0, 1.224745], [0, 1.224745]]), abs=1e-6
    )
    assert found[0] == pytest.approx(-found[1])


def test_covariance_is_the_identity_and_the_mean_zero() -> None:
    found = whitened(cloud())
    assert np.cov(found, rowvar=False) == pytest.approx(np.eye(8), abs=1e-8)
    assert found.mean(axis=0) == pytest.approx(np.zeros(8), abs=1e-8)


def test_k_keeps_the_first_columns() -> None:
    assert whitened(cloud(), k=3) == pytest.approx(whitened(cloud())[:, :3])


def test_cosines_do_not_see_an_invertible_map_of_the_vectors() -> None:
    vectors = cloud()
    moved = vectors @ np.random.default_rng(1).normal(size=(8, 8)) - 3
    np.testing.assert_allclose(cosines(whitened(moved)), cosines(whitened(vectors)), atol=1e-7)
    turned = vectors @ np.linalg.qr(np.random.default_rng(2).normal(size=(8, 8)))[0] + 7
    np.testing.assert_allclose(cosines(whitened(turned, k=3)), cosines(whitened(vectors, k=3)), atol=1e-7)


def test_a_direction_that_does_not_vary_is_left_out_not_blown_up() -> None:
    vectors = np.hstack([cloud(), 3 * np.ones((500, 1))])
    assert whitened(vectors).shape == (500, 8)
    assert np.cov(whitened(vectors), rowvar=False) == pytest.approx(np.eye(8), abs=1e-8)
    with pytest.raises(InputError, match="vary in 8 of 9 dimensions"):
        whitened(vectors, k=9)


def test_few_texts_shrink_the_covariance_and_say_so() -> None:
    vectors = cloud(count=9, width=16)
    with pytest.warns(SpaceWarning, match="9 texts are few for 16 dimensions"):
        found = Whitening(Whitening.Settings()).linear(vectors)
    assert np.isfinite(found.columns).all()
    assert found.columns.shape == (16, 16)
    with pytest.raises(InputError, match="9 texts do not show"):
        Whitening(Whitening.Settings(shrinkage=0.0)).linear(vectors)
    assert whitened(vectors, k=4, shrinkage=0.0).shape == (9, 4)  # they vary in enough directions for four


def test_full_shrinkage_only_centres_and_scales() -> None:
    vectors = cloud()
    np.testing.assert_allclose(
        cosines(whitened(vectors, shrinkage=1.0)), cosines(vectors - vectors.mean(axis=0)), atol=1e-9
    )


def test_many_texts_are_not_shrunk(recwarn: pytest.WarningsRecorder) -> None:
    assert whitened(cloud()) == pytest.approx(whitened(cloud(), shrinkage=0.0))
    assert not [warning for warning in recwarn if warning.category is SpaceWarning]


def test_all_but_the_top_by_hand() -> None:
    vectors = cloud()
    module = RemoveComponents(RemoveComponents.Settings(components=2)).fitted(vectors)
    with torch.inference_mode():
        found = module(torch.from_numpy(vectors).float()).numpy()
    centred = vectors - vectors.mean(axis=0)
    top = np.linalg.svd(centred, full_matrices=False)[2][:2]
    expected = centred - sum(np.outer(centred @ direction, direction) for direction in top)
    assert found == pytest.approx(expected, abs=1e-4)
    assert np.linalg.matrix_rank(found, tol=1e-2) == 6


def test_a_hundredth_of_the_dimensions_goes_by_default(encoder: Encoder, texts: list[str]) -> None:
    mapped = isotrope.fit_space("remove-components", encoder, texts)
    values = np.linalg.svd(mapped.encode(texts), compute_uv=False)
    assert mapped.dimension == 32
    assert (values > 1e-4 * values[0]).sum() == 30  # one taken away, and one that a layer normalisation never let vary


@pytest.mark.parametrize(("width", "removed"), [(40, 1), (384, 4), (768, 8)])
def test_the_hundredth_is_rounded(width: int, removed: int) -> None:
    vectors = np.random.default_rng(0).normal(size=(2 * width, width))
    module = RemoveComponents(RemoveComponents.Settings()).fitted(vectors)
    assert int(torch.linalg.matrix_rank(module.linear.weight)) == width - removed


def test_standardised_dimensions() -> None:
    vectors = np.hstack([cloud(), np.full((500, 1), 4.0)])
    module = Standardise(Standardise.Settings()).fitted(vectors)
    with torch.inference_mode():
        found = module(torch.from_numpy(vectors).float()).numpy()
    assert found.mean(axis=0) == pytest.approx(np.zeros(9), abs=1e-5)
    assert found.std(axis=0, ddof=1) == pytest.approx([1.0] * 8 + [0.0], abs=1e-5)


def test_whitening_an_encoder(encoder: Encoder, texts: list[str]) -> None:
    repeated = texts + texts[:50]  # a text that stands twice counts twice
    mapped = isotrope.fit_space("whitening", encoder, repeated)
    assert mapped.dimension == 31
    assert np.cov(mapped.encode(repeated), rowvar=False) == pytest.approx(np.eye(31), abs=1e-3)
    assert isotrope.fit_space("whitening", encoder, texts, k=5).encode(texts).shape == (600, 5)


def test_an_encoder_of_unit_vectors_stays_one(encoder: Encoder, texts: list[str]) -> None:
    encoder.parts.append(Normalize())
    mapped = isotrope.fit_space("standardise", encoder, texts)
    assert np.linalg.norm(mapped.encode(texts[:5]), axis=1) == pytest.approx(np.ones(5), abs=1e-5)
