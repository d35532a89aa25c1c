"""Where a run stands, and the judge's verdict that it goes by."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from isotrope.encoders.encoder import Encoder


class TrainingWarning(UserWarning):
    """Something about the run that a person should know; training goes on."""


@dataclass
class TrainingState:
    """What a checkpoint holds besides weights and moments."""

    step: int = 0
    best: float = -math.inf
    best_step: int = 0
    stale: int = 0  # evaluations since the best
    seconds: float = 0.0  # of training: no loading, no evaluation, no interruption


@dataclass(frozen=True)
class Judgement:
    """Measures of an encoder, and the one that checkpoints are chosen by; ``sources``: those of each source's
    held-out text, where a run has several."""

    measures: dict[str, float]
    chosen_by: str
    lower_is_better: bool = False
    sources: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def said(self) -> str:
        """The measure that chooses, in words."""
        return f"{self.chosen_by} {self.measures[self.chosen_by]:.4f}"

    @property
    def score(self) -> float:
        """The larger the better."""
        return -self.measures[self.chosen_by] if self.lower_is_better else self.measures[self.chosen_by]


Judge = Callable[[Encoder], Judgement]
KeptLine = dict[str, Any]  # of the log: ``kept`` are the measures of weights that a tactic changed at the end


@dataclass(frozen=True)
class Finished:
    """``complete`` is False where the time given ran out before the last step. ``start_kept``: no evaluation was better
    than the start, which is what the run ends with. ``judged`` is False where a stopped run had no evaluation yet: it
    ends with the weights of its last step."""

    history: list[dict[str, Any]]
    selected_step: int
    steps: int
    complete: bool = True
    start_kept: bool = False
    judged: bool = True


class Interrupted(KeyboardInterrupt):
    """Ctrl-C after a whole step: the checkpoint is written, and the learner holds what a model is made of."""

    def __init__(self, sentence: str, finished: Finished) -> None:
        super().__init__(sentence)
        self.finished = finished
