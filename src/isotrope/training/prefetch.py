"""Batches made in a thread while the previous step computes, and what Ctrl-C means meanwhile."""

from __future__ import annotations

import queue
import signal
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from isotrope.methods.frame.batch import Batch

Chosen = TypeVar("Chosen")


def prefetched(
    make: Callable[[int, Chosen], Batch], stream: Iterator[Chosen], skip: int, ahead: int = 2
) -> Generator[tuple[int, Batch], None, None]:
    """(number, batch), from the batch ``skip`` on."""
    ready: queue.Queue[tuple[int, Batch] | Exception] = queue.Queue(maxsize=ahead)
    done = threading.Event()

    def offer(item: tuple[int, Batch] | Exception) -> None:
        while not done.is_set():
            with suppress(queue.Full):
                ready.put(item, timeout=0.1)
                return

    def work() -> None:
        try:
            for number, chosen in enumerate(stream):
                if done.is_set():
                    return
                if number >= skip:
                    offer((number, make(number, chosen)))
        except Exception as error:  # handed to the thread that waits for batches
            offer(error)

    worker = threading.Thread(target=work, daemon=True)
    worker.start()
    try:
        while True:
            item = ready.get()
            if isinstance(item, Exception):
                raise item
            yield item
    finally:
        done.set()
        worker.join()  # a thread inside torch must not outlive the interpreter


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """The first Ctrl-C lets the step finish and be saved; the second one stops at once."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked = threading.Event()

    def note(number: int, frame: Any) -> None:
        asked.set()
        signal.signal(signal.SIGINT, before)

    before = signal.signal(signal.SIGINT, note)
    try:
        yield asked.is_set
    finally:
        signal.signal(signal.SIGINT, before)
