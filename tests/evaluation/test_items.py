"""Scores from items: the score of all of them, and of a resample."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from isotrope.evaluation.items import Items


def test_a_mean_is_that_of_the_chosen_rows():
    items = Items(np.array([1.0, 0.0, 1.0, 1.0]))
    assert items.score() == 75.0
    assert items.score(np.array([1, 1, 0, 1])) == 25.0


def test_a_rank_correlation_is_scipys():
    rng = np.random.default_rng(0)
    items = Items(rng.normal(size=50), rng.normal(size=50))
    rows = rng.integers(50, size=50)
    assert items.score() == pytest.approx(100 * spearmanr(items.values, items.gold).statistic)
    assert items.score(rows) == pytest.approx(100 * spearmanr(items.values[rows], items.gold[rows]).statistic)
