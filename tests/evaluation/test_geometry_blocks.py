"""The blocked code against naive float64 loops, and what must not move the numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist
from scipy.stats import skew

from isotrope.errors import InputError
from isotrope.evaluation import geometry as arrays
from isotrope.evaluation.geometry_description import describe_vectors
from isotrope.measures import isotropy as geometry


@pytest.fixture
def points() -> np.ndarray:
    return np.random.default_rng(1).normal(size=(300, 12)) * np.linspace(3, 0.2, 12) + 0.5


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


@pytest.mark.parametrize("block", [1, 37, 50, 75, 100, 150, 299, 300, 4000])
def test_each_two_rows_meet_once_whatever_the_tiles(points: np.ndarray, block: int) -> None:
    expected = np.log(np.exp(-2 * pdist(unit(points)) ** 2).mean())
    assert float(geometry.uniformity(torch.from_numpy(points), block=block)) == pytest.approx(expected, abs=1e-12)


def test_float32_products_with_float64_sums_stay_within_1e5(
    points: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    exact = describe_vectors(points)
    monkeypatch.setattr(arrays, "EXACT", 10)
    monkeypatch.setattr(geometry, "TRIANGLE", 64)
    assert arrays.cloud(points, 2).dtype == torch.float32
    fast = describe_vectors(points)
    for name in ("uniformity", "mean_cosine", "effective_rank"):
        assert getattr(fast, name) == pytest.approx(getattr(exact, name), abs=1e-5), name
    assert fast.spectrum == pytest.approx(exact.spectrum, abs=1e-6)
    assert fast.top_shares == pytest.approx(exact.top_shares, abs=1e-6)
    assert fast.hubness == pytest.approx(exact.hubness, abs=0.05)  # a near tie may fall the other way


def test_some_of_the_pairs_say_what_all_say() -> None:
    cloud = torch.from_numpy(np.random.default_rng(2).normal(size=(2000, 8)) + 1)
    everything = float(geometry.uniformity(cloud, block=50))
    some = float(geometry.uniformity(cloud, block=50, most_pairs=200_000))
    assert some != everything
    assert some == pytest.approx(everything, abs=0.02)
    assert float(geometry.uniformity(cloud, block=50, most_pairs=10**9)) == everything


def test_every_row_is_in_as_many_of_the_pairs() -> None:
    """The gradient of a row tells whether it took part: with 20 blocks and few pairs, all rows do, alike."""
    cloud = torch.eye(200, dtype=torch.float64).requires_grad_()
    geometry.uniformity(cloud, block=10, most_pairs=2000).backward()
    met = (cloud.grad != 0).sum(dim=1)  # one for each row that was met
    assert met.min() == met.max() == 2 * 10 + 9


@pytest.mark.parametrize("origin", [None, "mean"])
def test_singular_values_from_a_triangle_are_those_of_the_whole(
    points: np.ndarray, origin: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shift = points.mean(axis=0) if origin else np.zeros(12)
    expected = np.linalg.svd(points - shift, compute_uv=False)
    monkeypatch.setattr(geometry, "TRIANGLE", 7)  # fewer rows than columns, and a rest
    found = geometry.singular_values(torch.from_numpy(points), torch.from_numpy(shift) if origin else None)
    assert found.numpy() == pytest.approx(expected)


def test_top_shares_are_shares_of_the_covariance(points: np.ndarray) -> None:
    variances = np.sort(np.linalg.eigvalsh(np.cov(points.T)))[::-1]
    shares = arrays.top_shares(points)
    assert list(shares) == ["1", "2", "5", "10"]
    for count, share in shares.items():
        assert share == pytest.approx(variances[: int(count)].sum() / variances.sum())
    assert arrays.top_shares(points[:, :3])["5"] == pytest.approx(1)


@pytest.mark.parametrize("block", [13, 1024])
def test_hubness_equals_a_loop(points: np.ndarray, block: int) -> None:
    cosines = unit(points) @ unit(points).T
    occurrence = np.zeros(len(points))
    for row in range(len(points)):
        others = [other for other in range(len(points)) if other != row]
        for near in sorted(others, key=lambda other: -cosines[row, other])[:4]:
            occurrence[near] += 1
    assert arrays.hubness(points, 4, block) == pytest.approx(skew(occurrence))


def test_a_star_has_a_hub_and_a_ring_has_none() -> None:
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    assert arrays.hubness(ring, 2) == pytest.approx(0)
    star = np.vstack([np.eye(30), np.ones((1, 30))])
    assert arrays.hubness(star, 1) > 4


def test_rows_in_another_order_or_turned_leave_everything(points: np.ndarray) -> None:
    rng = np.random.default_rng(3)
    turn, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    before = describe_vectors(points)
    for other in (points[rng.permutation(len(points))], points @ turn, 7 * points):
        after = describe_vectors(other)
        assert after.spectrum == pytest.approx(before.spectrum)
        for name in ("effective_rank", "mean_cosine", "uniformity", "hubness"):
            assert getattr(after, name) == pytest.approx(getattr(before, name)), name
        assert after.top_shares == pytest.approx(before.top_shares)


def test_the_length_of_a_row_moves_no_angle(points: np.ndarray) -> None:
    lengths = np.random.default_rng(4).uniform(0.1, 10, size=(300, 1))
    before, after = describe_vectors(points), describe_vectors(points * lengths)
    for name in ("mean_cosine", "uniformity", "hubness"):
        assert getattr(after, name) == pytest.approx(getattr(before, name)), name
    assert after.effective_rank != pytest.approx(before.effective_rank)


def test_orthonormal_rows_are_the_fixed_point() -> None:
    found = describe_vectors(np.eye(20))
    assert found.uniformity == pytest.approx(-4)
    assert found.mean_cosine == pytest.approx(0)
    assert found.effective_rank == pytest.approx(20)
    assert found.spectrum == pytest.approx([1] * 20)
    assert found.top_shares["1"] == pytest.approx(1 / 19)


def test_a_small_cloud_has_no_hubness() -> None:
    assert describe_vectors(np.eye(5)).hubness is None
    with pytest.raises(InputError, match="10-occurrence needs more than 10 vectors; 5"):
        arrays.hubness(np.eye(5))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (np.ones((1, 4)), "At least 2 vectors"),
        (np.ones(4), "At least 2 vectors"),
        (np.ones((30, 4)), "All vectors are the same"),
        (np.zeros((30, 4)), "All vectors are the same"),
        (np.full((30, 4), 0.1) + 1e-9 * np.random.default_rng(0).normal(size=(30, 4)), "All vectors are the same"),
        (np.where(np.eye(30) > 0, np.nan, 1.0), "NaN or infinite"),
        (np.where(np.eye(30) > 0, np.inf, 1.0), "NaN or infinite"),
    ],
)
def test_what_has_no_geometry_is_refused(bad: np.ndarray, said: str) -> None:
    for measure in (describe_vectors, arrays.top_shares, arrays.hubness):
        with pytest.raises(InputError, match=said):
            measure(bad)


def test_uniformity_can_be_trained_on() -> None:
    cloud = torch.randn(9, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for block in (2, 20):
        assert torch.autograd.gradcheck(lambda x, block=block: geometry.uniformity(x, block=block), (cloud,))


def test_many_tiles_take_the_memory_of_one() -> None:
    """In a process of its own, on one thread, where fresh tiles of 16 MB once added up to 4 GB."""
    import subprocess
    import sys

    code = (
        "import resource, torch; from isotrope.measures import isotropy as geometry\n"
        "torch.set_num_threads(1); x = torch.randn(20000, 16)\n"
        "peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "geometry.uniformity(x[:4096]); before = peak()\n"
        "geometry.uniformity(x); print((peak() - before) // 1024)"
    )
    grown = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert grown < 100
