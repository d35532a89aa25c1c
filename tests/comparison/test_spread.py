"""Ten seeds of a method that judges itself: median, extremes, intervals, and what pairs of the same seed say."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from scipy import stats

import isotrope
from isotrope.comparison.spread import Interval, Spread


def test_intervals_are_students_t() -> None:
    values = [1.0, 2.0, 4.0, 5.0, 8.0]
    found = Interval.of(values)
    low, high = stats.t.interval(0.95, 4, loc=4.0, scale=stats.sem(values))
    assert (found.mean, found.low, found.high) == (4.0, pytest.approx(low), pytest.approx(high))
    assert Interval.of([3.0]) == Interval(3.0)
    assert Interval.of([3.0]).text(1) == "3.0"
    assert Interval(0.5, -0.25, 1.25).text(2, "+") == "+0.50 (-0.25 … +1.25)"


def test_differences_are_taken_seed_by_seed() -> None:
    first = {1: 10.0, 2: 20.0, 3: 60.0}
    found = Spread.of("accuracy", "other", {1: 11.0, 2: 21.0, 3: 61.0, 4: 5.0}, first)
    assert found.difference == Interval(
        1.0, 1.0, 1.0
    )  # seed 4 has no partner, and the spread between seeds is out of it
    assert (found.median, found.least, found.most, found.seeds) == (16.0, 5.0, 61.0, 4)
    assert found.cells("accuracy", 1)[3:5] == ["16.0", "5.0 – 61.0"]


def test_ten_seeds_of_fine_tuning_in_one_command(
    samples: dict[str, Path], short: dict[str, Any], tmp_path: Path
) -> None:
    own = {"F": {"child_tuning": "F"}}
    settings = {**short, "seeds": 5, "max_steps": 1, "eval_steps": 1}
    found = isotrope.compare(
        samples["labelled-pairs"], "plain=fine-tune,F=fine-tune", tmp_path / "all", suite="own", own=own, **settings
    )
    assert not found.failures
    assert found.columns == ["seconds", "accuracy", "f1", "guess"]
    assert [(one.measure, one.name) for one in found.spread()] == [
        ("accuracy", "plain"),
        ("accuracy", "F"),
        ("f1", "plain"),
        ("f1", "F"),
    ]
    plain, child = found.spread()[:2]
    accuracies = {run.seed: run.measures["accuracy"] for run in found.runs if run.name == "plain"}
    assert plain.seeds == len(accuracies) == 5
    assert plain.median == sorted(accuracies.values())[2]
    assert child.difference is not None
    assert math.isclose(child.difference.mean, child.mean.mean - plain.mean.mean, abs_tol=1e-9)
    assert "median" in found.table()
    assert "of plain, F the last" in found.table()
    assert "from plain, seed by seed" in found.markdown()
    kept = json.loads((tmp_path / "all" / "comparison.json").read_text())
    assert kept["spread"][0]["median"] == plain.median
    again = isotrope.compare(
        samples["labelled-pairs"], "plain=fine-tune,F=fine-tune", tmp_path / "all", suite="own", own=own, **settings
    )
    assert again.spread() == found.spread()


def test_few_seeds_have_no_spread(samples: dict[str, Path], short: dict[str, Any], tmp_path: Path) -> None:
    found = isotrope.compare(samples["documents"], "nsp", tmp_path / "all", suite="own", **{**short, "max_length": 32})
    assert found.columns == ["seconds", "nsp_accuracy", "nsp_guess", "mlm_perplexity"]
    assert found.rows()[0].name == "start"
    assert found.spread() == []
