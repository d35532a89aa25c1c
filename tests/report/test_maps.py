"""Maps, groups and neighbours, on vectors made up for the purpose."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotrope.measures.unit_vectors import unit_rows
from isotrope.report import sentence_map as maps
from isotrope.report.drawing import save_figure
from isotrope.report.figure_parts import Axis, Figure, Panel, Series, Style


@pytest.fixture
def clouds() -> np.ndarray:
    """Three clouds of 30, 20 and 10 unit vectors."""
    rng = np.random.default_rng(0)
    centres = np.eye(8)[:3]
    return unit_rows(np.repeat(centres, [30, 20, 10], axis=0) + 0.05 * rng.normal(size=(60, 8)))


def test_a_map_keeps_clouds_together_and_repeats_under_a_seed(clouds: np.ndarray) -> None:
    first, second = (maps.lay_out(clouds, seed=3) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.abs(first.mean(axis=0)).max() < 1e-6
    assert np.linalg.norm(first, axis=1).max() == pytest.approx(1)
    near = np.linalg.norm(first[:, None] - first[None], axis=-1) + 9 * np.eye(60)
    cloud = np.repeat([0, 1, 2], [30, 20, 10])
    assert (cloud[near.argmin(axis=1)] == cloud).all()


def test_a_map_is_turned_and_mirrored_to_lie_as_another(clouds: np.ndarray) -> None:
    first = maps.lay_out(clouds, seed=3)
    turned = first @ np.array([[0.6, 0.8], [0.8, -0.6]])  # a mirror and a turn
    assert np.allclose(maps.lay_out(clouds, seed=3, like=turned), turned, atol=1e-6)


def test_equal_vectors_can_be_laid_out() -> None:
    assert np.isfinite(maps.lay_out(np.tile(np.eye(4)[:1], (12, 1)), seed=0)).all()


def test_groups_are_the_clouds_largest_first(clouds: np.ndarray) -> None:
    groups = maps.group(clouds, seed=0)
    assert np.bincount(groups).tolist() == sorted(np.bincount(groups).tolist(), reverse=True)
    cloud = np.repeat([0, 1, 2], [30, 20, 10])
    assert all(len(set(cloud[groups == number])) == 1 for number in range(groups.max() + 1))
    assert maps.group(np.tile(np.eye(4)[:2], (6, 1)), seed=0).max() == 1  # no more groups than different vectors


def test_groups_are_named_by_their_own_words() -> None:
    texts = (
        [f"parrot {n} feather thing" for n in "abcdefghij"]
        + [f"engine {n} piston thing" for n in "abcdefghij"]
        + ["thing x"] * 90
    )
    groups = np.repeat([1, 2, 0], [10, 10, 90])
    names = maps.name_groups(texts, groups)
    assert "parrot" in names[1]
    assert "piston" in names[2]
    assert "thing" not in " ".join(names)
    assert maps.name_groups(["1 2", "3 4"], np.array([0, 1])) == ["group 1", "group 2"]


def test_neighbours_equal_a_naive_search_also_among_equals(clouds: np.ndarray) -> None:
    rows = np.concatenate([clouds, np.repeat(clouds[:4], 8, axis=0)])
    scores, found = maps.neighbours(rows, 5)
    cosines = rows @ rows.T
    for number in range(len(rows)):
        assert number not in found[number]
        others = np.sort(np.delete(cosines[number], number))[::-1]
        assert np.allclose(scores[number], others[:5])
        assert np.allclose(cosines[number, found[number]], scores[number])


def test_typical_rows_lie_in_the_middle(clouds: np.ndarray) -> None:
    groups = np.repeat([0, 1, 2], [30, 20, 10])
    rows = maps.typical(clouds, groups, 2)
    assert [int(groups[row]) for row in rows] == [0, 1]
    middle = clouds[:30].mean(axis=0)
    assert clouds[rows[0]] @ middle == pytest.approx(max(clouds[:30] @ middle))


def test_a_dollar_in_a_name_is_a_dollar(tmp_path: Path) -> None:
    """matplotlib reads what stands between two dollars as a formula, and refuses what is none."""
    series = Series("cost $\\frac$", Style("#0072B2"), x=[0.0, 1.0], y=[0.0, 1.0])
    figure = Figure("training", "paid $5_$", "lines", "", Axis("x"), Axis("y"), [Panel("of $a^$", [series])])
    save_figure(figure, tmp_path / "figure.svg", "svg")
    text = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert "cost $\\frac$" in text
    assert "of $a^$" in text
