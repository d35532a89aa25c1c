"""Batches made in a thread while the previous step computes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from typing import TypeVar

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
