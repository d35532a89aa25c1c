"""The frame of a tactic: what changes an update for any method, registered by being a file of this folder."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.method_registry import carded_in
from isotrope.methods.frame.settings import Settings
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.state import Judgement, KeptLine

if TYPE_CHECKING:
    from accelerate import Accelerator

    from isotrope.training.feeds import CorpusFeed


BLOCK = re.compile(r"\.(layers?|blocks?|h)\.\d+\.")  # a block of a backbone, in the name of a parameter


@dataclass(frozen=True)
class TacticSettings(Settings, ABC):
    """Settings of a tactic; by default it is off."""

    @property
    @abstractmethod
    def active(self) -> bool: ...


T = TypeVar("T", bound=TacticSettings)


class Tactic(ABC, Generic[T]):
    """Made before anything is written, and while everything that is ever trained can be: it refuses what cannot work.

    It knows the update's number and the scores of evaluations. What it remembers of these is its ``state``, which
    checkpoints hold, so a resumed run goes on in the middle of whatever the tactic does.
    """

    card: ClassVar[Card]
    Settings: ClassVar[type[TacticSettings]]
    counts_steps: ClassVar[bool] = False  # it must know beforehand how many steps the run has

    def __init__(self, settings: T, combined: Combined, loop: LoopSettings, steps: int) -> None:
        self.settings, self.combined, self.loop, self.steps = settings, combined, loop, steps

    def prepare(self, feed: CorpusFeed, accelerator: Accelerator) -> None:
        """Once, on the device, with the weights that the run starts from (also where it is resumed)."""

    def before_update(self, step: int) -> None:
        """Freeze or thaw parameters."""

    def change_gradients(self, step: int) -> None:
        """After clipping and before the optimiser sees them, alike in every process."""

    def after_update(self, step: int) -> None:
        """After the optimiser and the towers, alike in every process."""

    def judged(self) -> AbstractContextManager[None]:
        """Inside it the weights are those that an evaluation judges and the model keeps."""
        return nullcontext()

    def change_kept(self, judge: Callable[[], Judgement]) -> KeptLine:
        """Once, at the end of a run, with the weights of its best update put back: change what the model keeps.

        ``judge`` judges them as they stand, in the first process; the others get its score. Gives what the log and
        run.json say of it, with the measures of what is kept as ``kept``; nothing where nothing is changed.
        """
        return {}

    def rate(self, step: int) -> float | None:
        """The share of the learning rate that an update has; None: the loop's schedule."""
        return None

    def after_evaluation(self, step: int, score: float) -> None:
        """After ``step`` updates, before the checkpoint; the larger the score the better, alike in every process."""

    def state(self) -> dict[str, Any]:
        """Tensors, numbers and lists of these that a resumed run needs."""
        return {}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from a ``state``."""

    def logged(self, step: int) -> dict[str, Any]:
        """What a line of the log says of it."""
        return {}


@cache
def tactics() -> dict[str, type[Tactic[Any]]]:
    import isotrope.training.tactics

    return carded_in(isotrope.training.tactics, Tactic)
