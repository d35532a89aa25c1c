"""Batches of an ``encode`` side by side on a CPU: each thread takes whole batches, and computes them on its own core.

Torch would share every product of a batch among the cores; they wait for each other after each layer norm, and for
Python between them. Batches have nothing to wait for. On many cores a few threads share them, several cores each,
because Python runs in one thread at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

import torch
from torch import nn

Given = TypeVar("Given")
Found = TypeVar("Found")
MOST = 8  # threads; each has its share of the cores
ROUNDS = 2  # batches a thread must have, or some cores would stand idle at the end


class _Forks:
    """Whether torch's own threads may have begun here: a forked process has none of them, and would wait forever."""

    begun = False


def mind_forks() -> None:
    """Call before work on a CPU: a process that is forked after it computes on one core, as torch's own workers do."""
    _Forks.begun = True


def _begin_alone() -> None:
    if _Forks.begun:
        torch.set_num_threads(1)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_alone)


def cores_each() -> int:
    """Of the cores that torch may take, those of one batch."""
    cores = torch.get_num_threads()
    return cores // min(cores, MOST)


def side_by_side(
    work: Callable[[Given], Found], given: Sequence[Given], module: nn.Module, device: torch.device
) -> Iterator[Found]:
    """``work`` of each, in the order given; in threads where the module runs on a CPU and nobody watches it."""
    mind_forks()
    cores = torch.get_num_threads()
    threads = min(cores, MOST)
    if device.type != "cpu" or threads == 1 or len(given) < ROUNDS * threads or is_watched(module):
        yield from map(work, given)
        return
    running: list[Future[Found]] = []
    with ThreadPoolExecutor(threads, "isotrope-encode", take_cores, (cores_each(), cores)) as pool:
        try:
            for one in given:
                running.append(pool.submit(copy_context().run, _without_gradient, work, one))
                if len(running) > 2 * threads:  # no more results than these are held
                    yield running.pop(0).result()
            while running:
                yield running.pop(0).result()
        finally:
            for left in running:
                left.cancel()


def take_cores(own: int, cores: int) -> None:
    """Give this thread its number of cores; all others keep ``cores``.

    Torch also remembers the number for threads that are made later, so the old one is set again, by a thread that has
    no other use for it.
    """
    torch.get_num_threads()  # a thread takes over what was set last when it first asks; what it sets after that stays
    torch.set_num_threads(own)
    reminder = Thread(target=torch.set_num_threads, args=(cores,))
    reminder.start()
    reminder.join()


def _without_gradient(work: Callable[[Given], Found], one: Given) -> Found:
    """Inference mode belongs to a thread."""
    with torch.inference_mode():
        return work(one)


def is_watched(module: nn.Module) -> bool:
    """Whether a hook sees the states: it may count on one batch after another."""
    return any(part._forward_hooks or part._forward_pre_hooks for part in module.modules())
