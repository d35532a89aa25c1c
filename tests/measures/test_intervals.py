"""Intervals: golden values, simulation, and the limits of each formula."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from isotrope.measures.intervals import (
    Interval,
    binomial_interval,
    mean_share_interval,
    normal_interval,
    percentile_interval,
    student_interval,
)


def test_golden_values() -> None:
    assert percentile_interval(np.arange(1001.0)) == (25, 975)
    assert normal_interval(0.5, 100).times(100) == pytest.approx((40.2, 59.8))
    assert normal_interval(1.0, 10) == (1, 1)
    assert normal_interval(0.01, 10).low == 0
    assert student_interval([1.0, 2.0, 3.0]) == pytest.approx((2 - 4.302653 / 3**0.5, 2 + 4.302653 / 3**0.5))
    assert student_interval([1.0]) is None
    assert str(Interval(40.16, 59.84)) == "40.2 – 59.8"


def test_the_binomial_interval_is_that_of_resampling() -> None:
    trials = np.repeat([1.0, 0.0], [130, 70])
    draws = np.random.default_rng(0).choice(trials, size=(20_000, 200)).mean(axis=1)
    assert binomial_interval(0.65, 200) == pytest.approx(percentile_interval(draws), abs=0.006)


def test_a_mean_of_shares_varies_less_than_each() -> None:
    each = mean_share_interval([80.0], [400])
    assert each == pytest.approx(normal_interval(0.8, 400).times(100))
    four = mean_share_interval([80.0] * 4, [400] * 4)
    assert four.high - four.low == pytest.approx((each.high - each.low) / 2)
    assert mean_share_interval([99.0, 100.0], [5, 5]).high == 100.0
    assert mean_share_interval([1.0, 0.0], [5, 5]).low == 0.0


def test_students_interval_holds_the_mean_95_times_of_100() -> None:
    rng = np.random.default_rng(1)
    held = [
        interval.low < 3 < interval.high
        for interval in (student_interval(rng.normal(3, 2, size=5).tolist()) for _ in range(1000))
        if interval is not None
    ]
    assert stats.binomtest(sum(held), len(held), 0.95).pvalue > 0.01
