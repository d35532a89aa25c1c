"""Eval mode for a while, and one dropout rate for a whole backbone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import nn

ModuleT = TypeVar("ModuleT", bound=nn.Module)


_lock = Lock()
_held: WeakKeyDictionary[nn.Module, list[int]] = WeakKeyDictionary()  # [blocks that are open, mode before the first]
if hasattr(os, "register_at_fork"):  # a process that is forked must not find the lock taken by a thread it has not
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)


@contextmanager
def evaluating(module: ModuleT) -> Iterator[ModuleT]:
    """Eval mode and no gradient inside the block; each submodule gets its own mode back after it.

    Threads may evaluate modules that share parts: the mode comes back when the last of them is done.
    """
    with _lock:
        parts = list(module.modules())
        for part in parts:
            _held.setdefault(part, [0, part.training])[0] += 1
        module.eval()
    try:
        with torch.inference_mode():
            yield module
    finally:
        with _lock:
            for part in parts:
                held = _held[part]
                held[0] -= 1
                if not held[0]:
                    part.training = bool(held[1])
                    del _held[part]


def set_dropout(module: nn.Module, rate: float) -> None:
    """Set every dropout of a backbone, in attention too, to one rate."""
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = rate
        elif isinstance(getattr(part, "attention_dropout", None), float):
            part.attention_dropout = rate  # type: ignore[assignment]
