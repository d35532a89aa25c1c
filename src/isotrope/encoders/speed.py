"""How fast a training run may go on a GPU: layers compiled once, whole forwards replayed as CUDA graphs.

The loop says it for the length of a run; encoders ask. What they recorded meanwhile is forgotten at its end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Protocol
from weakref import WeakSet

import torch


@dataclass(frozen=True)
class Speed:
    """What a training run allows."""

    compiled: bool = False
    graphs: bool = False


class Recordings(Protocol):
    """Graphs that somebody holds."""

    def clear(self) -> None:
        """Give their memory back."""


PLAIN = Speed()
_speed: ContextVar[Speed] = ContextVar("speed", default=PLAIN)
_recordings: WeakSet[Recordings] = WeakSet()


@contextmanager
def at_speed(speed: Speed) -> Iterator[None]:
    """Inside the block training steps are compiled or replayed. The first ones then take some ten seconds more."""
    token = _speed.set(speed)
    try:
        yield
    finally:
        _speed.reset(token)


def speed_now() -> Speed:
    return PLAIN if torch.is_inference_mode_enabled() else _speed.get()


def remember(recordings: Recordings) -> None:
    """Have them cleared at the end of the run."""
    _recordings.add(recordings)


@contextmanager
def forgetting_graphs() -> Iterator[None]:
    """At the end of the block, whatever ends it, the memory of all recorded graphs is given back."""
    try:
        yield
    finally:
        for found in list(_recordings):
            found.clear()
