"""Closed-form values of specs/1, section 0, and naive twins."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.distance import pdist

from isotrope.errors import InputError
from isotrope.evaluation.geometry import alignment, anisotropy, effective_rank, spectrum, uniformity


@pytest.fixture
def cloud() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(300, 12)) + 0.5


def test_orthonormal_antipodal_and_identical_points() -> None:
    assert uniformity(np.eye(6)) == pytest.approx(-4)
    assert uniformity([[1.0, 0.0], [-1.0, 0.0]]) == pytest.approx(-8)
    assert uniformity(np.ones((5, 3))) == pytest.approx(0)
    assert alignment(np.eye(3), np.eye(3)) == 0
    assert alignment([[1.0, 0.0]], [[0.0, 3.0]]) == pytest.approx(2)


def test_vectors_are_normalized_inside(cloud: np.ndarray) -> None:
    assert uniformity(cloud) == pytest.approx(uniformity(50 * cloud))
    assert alignment(cloud, cloud[::-1]) == pytest.approx(alignment(9 * cloud, 0.1 * cloud[::-1]))


def test_uniformity_equals_pdist_over_distinct_pairs(cloud: np.ndarray) -> None:
    unit = cloud / np.linalg.norm(cloud, axis=1, keepdims=True)
    for t in (2.0, 3.0):
        assert uniformity(cloud, t) == pytest.approx(np.log(np.exp(-t * pdist(unit) ** 2).mean()))


def test_uniformity_in_blocks_equals_uniformity_at_once() -> None:
    import torch

    from isotrope.measures import isotropy as geometry

    points = torch.randn(500, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert float(geometry.uniformity(points, block=64)) == pytest.approx(
        float(geometry.uniformity(points, block=10_000))
    )


def test_anisotropy_is_the_mean_cosine_of_distinct_pairs(cloud: np.ndarray) -> None:
    unit = cloud / np.linalg.norm(cloud, axis=1, keepdims=True)
    cosines = (unit @ unit.T)[~np.eye(len(unit), dtype=bool)]
    assert anisotropy(cloud) == pytest.approx(cosines.mean())
    assert anisotropy(np.ones((4, 3))) == pytest.approx(1)


def test_effective_rank_counts_equal_directions() -> None:
    assert effective_rank(np.eye(7)) == pytest.approx(7)
    assert effective_rank(np.outer(np.arange(1, 9), np.ones(5))) == pytest.approx(1)


def test_spectrum_starts_at_one_and_falls(cloud: np.ndarray) -> None:
    values = spectrum(cloud)
    expected = np.linalg.svd(cloud, compute_uv=False)
    assert values == pytest.approx((expected / expected[0]).tolist())
    assert isinstance(values[0], float)


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((1, 3)), np.array([[1.0, np.nan], [0.0, 1.0]])])
def test_what_is_no_cloud_is_refused(bad: np.ndarray) -> None:
    with pytest.raises(InputError):
        uniformity(bad)
