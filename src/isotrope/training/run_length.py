"""How long a run is: a number of steps, or seconds of training from which the number follows as the run goes.

    steps = done + (seconds − used) / pace

Seconds are those of training alone: the clock stands while a run evaluates, saves or loads. The pace is the mean over
the steps since the second, because the first one is slow (kernels are chosen, memory is reserved). The number is found
again after every step, so the schedule, which is made of steps, reaches its end with the time. Warm-up is a share of
the steps to come, and no slow first step can use it up. Take seconds to compare methods whose steps cost differently;
take steps where a run must be repeatable bit for bit, because no clock is. A time limit is the smaller of the two: the
steps that were asked for, or those that fit into the limit at the pace of this machine.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from isotrope.training.state import TrainingState

if TYPE_CHECKING:
    from accelerate import Accelerator

UNMEASURED = 1000  # steps that a run by time is taken to have before its first step is done


class RunLength:
    """Adds the seconds of training to the state, and says how many steps the run has."""

    def __init__(self, steps: int, seconds: float | None, accelerator: Accelerator, limit: float | None = None) -> None:
        """``steps`` counts where ``seconds`` is None, and no more of them are made than fit into ``limit`` seconds."""
        self.most = steps if seconds is None else None
        self.in_steps = seconds is None
        self.steps, self.seconds, self.accelerator = steps, limit if seconds is None else seconds, accelerator
        self.clock = now()
        self.measured_from: tuple[int, float] | None = None  # the step and the seconds after which the pace is measured

    def begin(self, state: TrainingState) -> None:
        """Before the first step of this process; a resumed run has used some of its seconds."""
        if self.seconds is not None and state.step:
            self.steps = self._agreed(self._expected(state))
        self.go_on()

    def go_on(self) -> None:
        """After work that is not training."""
        self.clock = now()

    def count(self, state: TrainingState) -> None:
        """Add the seconds since the last count."""
        last, self.clock = self.clock, now()
        state.seconds += self.clock - last

    def after_step(self, state: TrainingState) -> int:
        """How many steps the run has, as far as can be said after this one."""
        self.count(state)
        if self.seconds is not None:
            self.steps = self._agreed(self._expected(state))
            self.measured_from = self.measured_from or (state.step, state.seconds)
        return self.steps

    def total(self) -> int:
        """Of the progress bar: steps, or whole seconds."""
        return self.steps if self.in_steps or self.seconds is None else max(int(self.seconds), 1)

    def unit(self) -> str:
        """Behind the label of the bar, where it does not count steps."""
        return "" if self.in_steps else ", in seconds"

    def done(self, state: TrainingState) -> int:
        """Of ``total``."""
        return state.step if self.in_steps else min(int(state.seconds), self.total())

    def cut_short(self, state: TrainingState) -> str | None:
        """A sentence where the time limit left out some of the steps that were asked for."""
        if self.seconds is None or self.most is None or not state.step >= self.steps or state.step >= self.most:
            return None
        return (
            f"time_limit: {self.seconds / 60:.3g} minutes were enough for {state.step:,} of {self.most:,} steps; raise "
            "time_limit (seconds), or give epochs or max_steps, to train on the rest of the text."
        )

    def _expected(self, state: TrainingState) -> int:
        assert self.seconds is not None
        left = max(self.seconds - state.seconds, 0.0)
        step, seconds = self.measured_from or (0, 0.0)
        pace = (state.seconds - seconds) / (state.step - step)
        if left and (state.step == 1 or pace <= 0):  # the first step says nothing of the others
            return UNMEASURED if self.most is None else self.most
        steps = state.step + (round(left / pace) if left else 0)
        return steps if self.most is None else min(steps, self.most)

    def _agreed(self, steps: int) -> int:
        """By the clock of the first process: all must end at the same step."""
        if self.accelerator.num_processes == 1:
            return steps
        verdict = torch.tensor(steps, device=self.accelerator.device)
        torch.distributed.broadcast(verdict, 0)
        return int(verdict)


def now() -> float:
    return time.perf_counter()
