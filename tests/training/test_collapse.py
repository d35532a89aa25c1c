"""The alarm speaks when the space falls in, says what to do, and stays silent otherwise."""

from __future__ import annotations

import math

from isotrope.training.collapse import CollapseAlarm


def test_a_loss_that_sits_at_log_n_is_reported_once() -> None:
    alarm = CollapseAlarm()
    said = [s for step in range(10, 200, 10) for s in alarm.after_log(step, math.log(64) - 0.01, 64)]
    assert len(said) == 1
    assert "log(64)" in said[0]
    assert "learning rate" in said[0]


def test_a_falling_loss_is_not_reported() -> None:
    alarm = CollapseAlarm()
    assert not [
        s for step in range(10, 400, 10) for s in alarm.after_log(step, math.log(64) * math.exp(-step / 100), 64)
    ]


def test_a_falling_rank_and_a_needle_are_reported() -> None:
    alarm = CollapseAlarm()
    assert not alarm.after_evaluation(0, {"effective_rank": 80.0, "mean_cosine": 0.6})
    assert not alarm.after_evaluation(10, {"effective_rank": 70.0, "mean_cosine": 0.7})
    said = alarm.after_evaluation(20, {"effective_rank": 12.0, "mean_cosine": 0.99})
    assert len(said) == 2
    assert "80.0 to 12.0" in said[0]
    assert "0.990" in said[1]


def test_a_model_that_starts_as_a_needle_and_opens_is_not_scolded() -> None:
    alarm = CollapseAlarm()
    assert not alarm.after_evaluation(0, {"effective_rank": 20.0, "mean_cosine": 0.98})
    assert not alarm.after_evaluation(10, {"effective_rank": 30.0, "mean_cosine": 0.96})
    assert not alarm.after_evaluation(20, {"effective_rank": 30.0, "mean_cosine": 0.981})
    assert "needle" in alarm.after_evaluation(30, {"effective_rank": 30.0, "mean_cosine": 0.999})[0]
