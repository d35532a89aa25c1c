"""A run of so many seconds: its clock, its schedule, its end, and how it goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest
from accelerate import Accelerator

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation import checkpoint_judge
from isotrope.methods.frame.combined import Combined
from isotrope.training import run_length
from isotrope.training.optimiser import rise_and_fall
from isotrope.training.run_length import UNMEASURED, RunLength
from isotrope.training.state import TrainingState

SHORT: dict[str, Any] = {
    "batch_size": 16,
    "eval_steps": 4,
    "logging_steps": 1,
    "learning_rate": 1e-3,
    "held_out": 40,
    "max_length": 24,
}
pytestmark = pytest.mark.filterwarnings("ignore:Training did not improve")


class Clock:
    """Time that passes only where a test lets it."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(run_length, "now", found)
    return found


@pytest.fixture
def seconds_a_step(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Every update takes a second, the first of a run five, and every evaluation an hour."""
    steps = Combined.after_update
    judged = checkpoint_judge.make_judge

    def slow_step(self: Combined, representations: Any) -> None:
        clock.time += 1.0 if getattr(self, "warm", False) else 5.0
        self.warm = True
        steps(self, representations)

    def slow_judge(*given: Any) -> Any:
        judge = judged(*given)

        def judging(encoder: Any) -> Any:
            clock.time += 3600
            return judge(encoder)

        return judging

    monkeypatch.setattr(Combined, "after_update", slow_step)
    monkeypatch.setattr(checkpoint_judge, "make_judge", slow_judge)
    return clock


def rates(history: list[dict[str, Any]]) -> list[float]:
    return [line["learning_rate"] for line in history if "loss" in line]


def last_step(history: list[dict[str, Any]]) -> int:
    return max(line["step"] for line in history)


@pytest.mark.usefixtures("seconds_a_step")
def test_a_run_by_time_ends_complete_with_its_schedule_and_evaluations_do_not_count(
    tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    run = isotrope.train(
        "simcse", sentences, tiny, tmp_path / "run", max_seconds=25, max_steps=3, warmup_ratio=0.2, **SHORT
    )
    assert last_step(run.history) == 21  # five seconds for the first step, one for each of the others
    found = rates(run.history)
    assert found[-1] == 0
    highest = found.index(max(found))
    assert 2 <= highest <= 5  # a fifth of the steps: the slow first one has not used the warm-up up
    assert found[highest:] == sorted(found[highest:], reverse=True)
    assert found[10] == pytest.approx(1e-3 * rise_and_fall(11, 21, 0.2), rel=1e-6)
    assert run.history[-1]["step"] == 21
    assert "evaluation" in run.history[-1]
    assert (run.folder / "model").is_dir()
    assert [line["seconds"] for line in run.history if "loss" in line][-1] == 25


@pytest.mark.usefixtures("seconds_a_step")
def test_a_run_that_the_time_limit_ends_says_so(
    tiny: Path, sentences: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", "isotrope"):
        isotrope.train("simcse", sentences, tiny, tmp_path / "run", time_limit=12, max_steps=60, **SHORT)
    assert "time_limit: 0.2 minutes were enough for 8 of 60 steps" in caplog.text
    caplog.clear()
    with caplog.at_level("INFO", "isotrope"):
        isotrope.train("simcse", sentences, tiny, tmp_path / "whole", time_limit=12, max_steps=4, **SHORT)
    assert "time_limit" not in caplog.text


@pytest.mark.usefixtures("seconds_a_step")
def test_the_time_used_counts_when_a_run_goes_on(
    tiny: Path, sentences: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {**SHORT, "max_seconds": 25}
    slow_step, taken = Combined.after_update, iter(range(1, 100))

    def interrupt(self: Combined, representations: Any) -> None:
        slow_step(self, representations)
        if next(taken) == 10:
            os.kill(os.getpid(), signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Combined, "after_update", interrupt)
        with pytest.raises(KeyboardInterrupt, match="step 10"):
            isotrope.train("simcse", sentences, tiny, tmp_path / "run", **given)
    run = isotrope.train("simcse", sentences, tiny, tmp_path / "run", resume=True, **given)
    assert last_step(run.history) == 17  # the first step after the break is slow again
    assert [line["seconds"] for line in run.history if "loss" in line][-1] == pytest.approx(25)
    assert rates(run.history)[-1] == 0


def test_the_number_of_steps_follows_the_pace(clock: Clock) -> None:
    length, state = RunLength(7, 100.0, Accelerator(cpu=True)), TrainingState()
    assert (length.total(), length.unit()) == (100, ", in seconds")  # what the bar counts
    length.begin(state)
    for spent, expected in [(40.0, UNMEASURED), (2.0, 2 + 29), (4.0, 3 + 18), (54.0, 4)]:
        clock.time += spent
        state.step += 1
        assert length.after_step(state) == expected
    by_steps, state = RunLength(7, None, Accelerator(cpu=True)), TrainingState(step=1)
    assert (by_steps.total(), by_steps.unit()) == (7, "")
    clock.time += 5
    assert by_steps.after_step(state) == 7
    assert (by_steps.total(), by_steps.done(state), state.seconds) == (7, 1, 5)


def test_what_needs_its_steps_beforehand_and_seconds_that_are_none_are_refused(
    tiny: Path, sentences: Path, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="chain-thaw shares out the steps of a run"):
        isotrope.train("simcse", sentences, tiny, tmp_path / "run", max_seconds=5, chain_thaw="even")
    for wrong in (0, -3):
        with pytest.raises(InputError, match="max_seconds must be above 0"):
            isotrope.train("simcse", sentences, tiny, tmp_path / "run", max_seconds=wrong)
    assert not (tmp_path / "run").exists()


def test_the_held_out_rows_may_have_a_seed_of_their_own(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    given = {**SHORT, "max_steps": 1}
    runs = [
        isotrope.train("simcse", sentences, tiny, tmp_path / str(number), **given, **seeds)
        for number, seeds in enumerate([{"seed": 1}, {"seed": 2}, {"seed": 2, "held_out_seed": 1}])
    ]
    before = [run.history[0]["evaluation"] for run in runs]
    assert before[0] == before[2] != before[1]
