"""An alarm for a space that collapses. The loss alone does not show it."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ADVICE = (
    "lower the learning rate, raise the temperature, use a larger batch, "
    "or check that the records differ, and by dropout, edits or augmentations the views of each"
)


@dataclass
class CollapseAlarm:
    """Feed it losses and measures; it answers with sentences, each warning once in a run."""

    window: int = 50
    losses: deque[float] = field(default_factory=deque)
    first_rank: float | None = None
    first_cosine: float | None = None
    said: set[str] = field(default_factory=set)

    def after_log(self, step: int, loss: float, candidates: int) -> list[str]:
        """``loss``: the contrastive term. Where all candidates are equally likely it is log N."""
        if candidates < 2:
            return []
        self.losses.append(loss)
        if len(self.losses) > self.window:
            self.losses.popleft()
        ceiling = math.log(candidates)
        stuck = len(self.losses) >= 5 and all(value > 0.98 * ceiling for value in self.losses)
        if not stuck or step < 50:
            return []
        return self._say(
            "loss",
            f"Step {step}: the loss sits at log({candidates}) = {ceiling:.3f}: "
            f"every candidate looks alike to the encoder; {ADVICE}.",
        )

    def after_evaluation(self, step: int, measures: Mapping[str, float]) -> list[str]:
        """``measures``: effective_rank and mean_cosine of held-out sentences, where they were taken."""
        warnings = []
        rank, cosine = measures.get("effective_rank"), measures.get("mean_cosine")
        if rank is not None:
            self.first_rank = self.first_rank or rank
            if rank < 0.5 * self.first_rank:
                warnings += self._say(
                    "rank",
                    f"Step {step}: the effective rank fell from {self.first_rank:.1f} to {rank:.1f}: "
                    f"directions are being lost; {ADVICE}.",
                )
        if cosine is not None:
            self.first_cosine = cosine if self.first_cosine is None else self.first_cosine
            if cosine > 0.95 and 1 - cosine < 0.5 * (1 - self.first_cosine):  # the opening of the cone halved
                warnings += self._say(
                    "cosine",
                    f"Step {step}: two random sentences have a mean cosine of {cosine:.3f}: "
                    f"the space is a needle; {ADVICE}.",
                )
        return warnings

    def state(self) -> dict[str, Any]:
        """What a resumed run needs, so that it says what an uninterrupted one says."""
        return {**vars(self), "losses": list(self.losses), "said": sorted(self.said)}

    def restore(self, state: Mapping[str, Any]) -> None:
        self.first_rank, self.first_cosine = state["first_rank"], state["first_cosine"]
        self.losses, self.said = deque(state["losses"]), set(state["said"])

    def _say(self, warning: str, sentence: str) -> list[str]:
        if warning in self.said:
            return []
        self.said.add(warning)
        return [sentence]
