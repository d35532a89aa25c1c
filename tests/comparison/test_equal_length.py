"""Runs of equal steps, equal epochs or equal seconds, judged on one held-out set."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import isotrope
from isotrope.comparison.method_terms import equal_length, seconds_of
from isotrope.errors import InputError
from isotrope.methods.frame.combined import Combined
from isotrope.training import run_length

pytestmark = pytest.mark.filterwarnings("ignore:Training did not improve")
Short = dict[str, Any]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Every update takes a second, one of masked language modelling two; nothing else takes any time."""
    time, plain = [0.0], Combined.after_update

    def step(self: Combined, representations: Any) -> None:
        time[0] += 2.0 if self.method.card.name == "mlm" else 1.0
        plain(self, representations)

    monkeypatch.setattr(run_length, "now", lambda: time[0])
    monkeypatch.setattr(Combined, "after_update", step)
    return time


@pytest.mark.usefixtures("clock")
def test_equal_seconds_give_a_cheap_method_more_steps_and_the_table_says_so(
    short: Short, sentences: Path, tmp_path: Path
) -> None:
    given = {**{name: value for name, value in short.items() if name != "max_steps"}, "seeds": 1}
    found = isotrope.compare(sentences, "simcse,mlm", tmp_path / "all", budget="12s", **given)
    assert not found.failures
    start, simcse, mlm = found.rows()
    assert (simcse.measures["steps"], simcse.measures["seconds"]) == ([12], [12.0])
    assert (mlm.measures["steps"], mlm.measures["seconds"]) == ([6], [12.0])
    assert "steps" not in start.measures
    assert found.columns[-3:-1] == ["steps", "seconds"] or found.columns[-2:] == ["steps", "seconds"]
    assert "max_seconds 12.0" in found.table()
    assert "max_steps" not in found.table()
    again = isotrope.compare(sentences, "simcse,mlm", tmp_path / "all", budget=12, **given)
    assert again.runs == found.runs


def test_a_stopped_comparison_by_time_goes_on_with_the_time_that_is_left(
    short: Short, sentences: Path, tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**{name: value for name, value in short.items() if name != "max_steps"}, "seeds": 1}
    timed = Combined.after_update

    def interrupt(self: Combined, representations: Any) -> None:
        timed(self, representations)
        if clock[0] == 5:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Combined, "after_update", interrupt)
        with pytest.raises(KeyboardInterrupt, match="goes on from here"):
            isotrope.compare(sentences, "simcse", tmp_path / "all", budget="8s", **given)
    clock[0] = 100.0
    found = isotrope.compare(sentences, "simcse", tmp_path / "all", budget="8s", **given)
    assert found.runs[0].measures["steps"] == 8
    assert clock[0] == 103.0


def test_equal_epochs_give_each_text_its_own_steps(
    short: Short, sentences: Path, triples: Path, tmp_path: Path
) -> None:
    given = {**{name: value for name, value in short.items() if name != "max_steps"}, "seeds": 1, "epochs": 0.5}
    found = isotrope.compare([sentences, triples], "simcse,simcse-supervised", tmp_path / "all", **given)
    assert not found.failures
    steps = {run.name: run.measures["steps"] for run in found.runs}
    assert steps["simcse"] != steps["simcse-supervised"]
    assert "epochs 0.5" in found.table()


def test_all_rows_and_the_start_are_judged_on_one_held_out_set(short: Short, sentences: Path, tmp_path: Path) -> None:
    found = isotrope.compare(sentences, "simcse", tmp_path / "all", **short)
    first, second = found.runs
    assert first.before == second.before
    start, row = found.rows()
    assert start.measures["retrieval_mrr"] == [first.before["retrieval_mrr"]]
    expected = [run.measures["retrieval_mrr"] - first.before["retrieval_mrr"] for run in found.runs]
    assert row.gains["retrieval_mrr"] == pytest.approx(expected)
    assert "alignment" not in row.gains
    assert "the same for all rows and seeds" in found.table()


def test_a_time_is_a_number_with_its_unit() -> None:
    assert [seconds_of(given) for given in ("90s", "10m", "2h", "1.5m", "7", 7, 0.5)] == [90, 600, 7200, 90, 7, 7, 0.5]
    for wrong in ("0", 0, "0m", "-3s", "soon", "10d", "", "m"):
        with pytest.raises(InputError, match="budget must be a time above 0"):
            seconds_of(wrong)


def test_one_length_is_enough() -> None:
    assert equal_length({}) == {"max_steps": 200}
    for settings, budget in (({"max_steps": 3}, "1m"), ({"epochs": 1}, "1m"), ({"epochs": 1, "max_steps": 3}, None)):
        with pytest.raises(InputError, match="all runs are equal in one of them"):
            equal_length(settings, budget)
