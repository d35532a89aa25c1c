"""Without a terminal a bar is a line of the log now and then."""

from __future__ import annotations

import logging

import pytest

from isotrope.progress import ProgressLines, bar, hidden, spoken_time


class Clock:
    time = 0.0

    def __call__(self) -> float:
        return self.time


def test_lines_come_at_growing_distances_and_say_what_is_left(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="isotrope")
    clock = Clock()
    advance = ProgressLines("training", 100, clock=clock)
    for second in range(1, 41):
        clock.time = float(second)
        advance(1, note="loss 0.5")
    assert caplog.messages == [
        "training: 10 of 100, 1.0/s, 90 s left, loss 0.5".replace("90 s", spoken_time(90)),
        "training: 30 of 100, 1.0/s, 70 s left, loss 0.5",
    ]


def test_the_end_may_move_and_a_resumed_run_counts_its_own_steps_only() -> None:
    clock = Clock()
    advance = ProgressLines("training", 100, start=50, clock=clock)
    advance(10, total=80)
    assert advance.line(20.0) == "training: 60 of 80, 2.0 s each, 40 s left"
    assert ProgressLines("reading", None, clock=clock).line(5.0) == "reading: 0"


@pytest.mark.parametrize(
    ("seconds", "said"), [(0.2, "0 s"), (89, "89 s"), (200, "3 min"), (4800, "80 min"), (7300, "2 h 2 min")]
)
def test_times_are_spoken(seconds: float, said: str) -> None:
    assert spoken_time(seconds) == said


def test_hidden_bars_say_nothing(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    caplog.set_level(logging.INFO, logger="isotrope")
    monkeypatch.setattr("isotrope.progress.FIRST_LINE", 0.0)
    with bar("seen", 2) as advance:
        advance()
    with hidden(), bar("unseen", 2) as advance:
        advance()
    with bar("not here", 2, show=False) as advance:
        advance()
    assert [message.partition(":")[0] for message in caplog.messages] == ["seen"]
