"""The moving average of weights (Polyak, Juditsky 1992): training goes on as it would, its average is judged and kept.

    θ̄ ← β_t θ̄ + (1 − β_t) θ  after each update,    β_t = min(β, (1 + t) / (10 + t))

An evaluation, and so the saved model, sees θ̄; the next update goes on from θ. β_t lets the first updates, which
are far from where the run ends, fade at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated, Any

import torch
from torch import Tensor

from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import at_least
from isotrope.training.tactics.tactic import Tactic, TacticSettings

AverageDecay = Annotated[
    float, at_least(0, below=1), "Decay of the average of weights that is judged and kept; 0: the weights themselves"
]


@dataclass(frozen=True)
class WeightAverageSettings(TacticSettings):
    average_decay: AverageDecay = 0.0

    @property
    def active(self) -> bool:
        return self.average_decay > 0


class WeightAverage(Tactic[WeightAverageSettings]):
    """Keeps a second copy of every weight.

    When to use it: runs of thousands of updates, or large rates. What goes wrong: 1 / (1 − β) updates are its memory,
    so a run that is shorter ends on a mean of its whole course. Sibling: the mean over the seeds of finished runs.
    """

    card = Card(
        name="weight-average",
        title="Moving average of weights, for any method",
        paper="Polyak, Juditsky. Acceleration of Stochastic Approximation by Averaging. SIAM Journal on Control and "
        "Optimization 1992",
        year=1992,
        needs="what the method needs",
        family="generative",
        kind="optimiser",
    )
    Settings = WeightAverageSettings
    average: list[Tensor] | None = None

    def after_update(self, step: int) -> None:
        weights = self._weights()
        if self.average is None:
            self.average = [weight.clone() for weight in weights]
        decay = min(self.settings.average_decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(self.average, weights, 1 - decay)

    @contextmanager
    def judged(self) -> Iterator[None]:
        if self.average is None:
            yield
            return
        weights = self._weights()
        kept = [weight.clone() for weight in weights]
        _put(weights, self.average)
        try:
            yield
        finally:
            _put(weights, kept)

    def state(self) -> dict[str, Any]:
        return {} if self.average is None else {"average": [tensor.cpu() for tensor in self.average]}

    def restore(self, state: dict[str, Any]) -> None:
        if state:
            self.average = [
                kept.to(weight.device) for kept, weight in zip(state["average"], self._weights(), strict=True)
            ]

    def _weights(self) -> list[Tensor]:
        return [parameter.detach() for parameter in self.combined.parameters()]


def _put(weights: list[Tensor], values: list[Tensor]) -> None:
    for weight, value in zip(weights, values, strict=True):
        weight.copy_(value)
