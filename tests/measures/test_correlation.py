"""Correlations: scipy as the twin, a loop for the resamples, and sides that never change."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy import stats

from isotrope.measures.correlation import correlations, pearson, resampled_spearman, spearman


@pytest.fixture
def sides() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    first = rng.normal(size=60)
    return first, np.round(first + rng.normal(size=60))  # with ties


def test_they_are_scipys(sides: tuple[np.ndarray, np.ndarray]) -> None:
    assert spearman(*sides) == stats.spearmanr(*sides).statistic
    assert pearson(*sides) == stats.pearsonr(*sides).statistic
    assert spearman(sides[0] ** 3, sides[1]) == pytest.approx(spearman(*sides))  # ranks alone count


def test_a_side_that_never_changes_has_none(recwarn: pytest.WarningsRecorder) -> None:
    for measure in (pearson, spearman):
        assert math.isnan(measure(np.ones(5), np.arange(5)))
        assert math.isnan(measure(np.arange(5), np.zeros(5)))
    assert {name: float(value) for name, value in correlations(torch.ones(5), torch.arange(5)).items()} == {
        "pearson": 0,
        "spearman": 0,
    }
    assert not recwarn.list


def test_resamples_equal_a_loop(sides: tuple[np.ndarray, np.ndarray]) -> None:
    draws = resampled_spearman(*sides, np.random.default_rng(7), 20)
    rows = np.random.default_rng(7).integers(0, 60, size=(20, 60))
    expected = [stats.spearmanr(sides[0][row], sides[1][row]).statistic for row in rows]
    assert draws == pytest.approx(np.array(expected))
    assert resampled_spearman(np.arange(4.0), np.ones(4), np.random.default_rng(0), 3).tolist() == [0, 0, 0]


@pytest.mark.parametrize("at_once", [1, 500, 1 << 30])
def test_resamples_do_not_hang_on_how_many_stand_in_memory(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    rng = np.random.default_rng(3)
    sides, expected = (rng.normal(size=101), rng.integers(0, 6, 101).astype(float)), np.random.default_rng(5)
    whole = resampled_spearman(*sides, expected, 37)
    monkeypatch.setattr("isotrope.measures.correlation.AT_ONCE", at_once)
    drawn = np.random.default_rng(5)
    assert np.array_equal(resampled_spearman(*sides, drawn, 37), whole)
    assert drawn.random() == expected.random()  # what is drawn next is the same too
