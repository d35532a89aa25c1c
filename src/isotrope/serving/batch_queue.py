"""One bounded queue: texts of many requests are joined into batches by their tokens, in one thread.

    batch = rows of the waiting works of one task, each work up to its share first, until ``batch_tokens`` are full

A request of a thousand texts therefore does not stand in the way of one with a single text: each batch holds rows of
both. There is no artificial delay; whatever arrives while a batch is computed is joined into the next. A work whose
client has gone is dropped before the next batch. A batch that fails is computed again work by work, so that one broken
request fails alone.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from isotrope.allocator import return_free_memory
from isotrope.serving.refusals import Refusal
from isotrope.serving.service_limits import Limits

EVERY = 64  # batches


def return_memory(batches: int) -> None:
    """Give freed memory back to the system after each ``EVERY`` batches; a few milliseconds.

    glibc keeps it in the arena of its thread; batches of other shapes do not fit into the holes, and the process grows
    by some megabytes every thousand requests.
    """
    if batches % EVERY == 0:
        return_free_memory()


@dataclass(frozen=True, eq=False)
class Task:
    """What is computed of texts: a result for each. Texts of one task may share a batch."""

    name: str
    run: Callable[[list[Any]], Sequence[Any]]


@dataclass(eq=False)
class Work:
    """The texts of one request that still wait, and the results that are there."""

    task: Task
    texts: list[Any]
    tokens: Sequence[int]
    future: asyncio.Future[list[Any]]
    loop: asyncio.AbstractEventLoop
    next: int = 0
    gone: bool = False
    results: list[Any] = field(default_factory=list)

    @property
    def waiting(self) -> int:
        return len(self.texts) - self.next

    def finish(self) -> None:
        self.loop.call_soon_threadsafe(self._set, self.future.set_result, self.results)

    def fail(self, error: Exception) -> None:
        self.gone = True
        self.loop.call_soon_threadsafe(self._set, self.future.set_exception, error)

    def _set(self, put: Callable[[Any], None], value: Any) -> None:
        if not self.future.done():
            put(value)


class Watcher(Protocol):
    """Whoever counts batches."""

    def batch(self, texts: int, tokens: int) -> None: ...


Batch = list[tuple[Work, int, int]]  # a work and the rows of it that are computed now


class BatchQueue:
    """``compute`` waits for the results of some texts; a thread takes batches until ``close``."""

    def __init__(self, limits: Limits, watcher: Watcher | None = None) -> None:
        self.limits, self.watcher = limits, watcher
        self._works: deque[Work] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="isotrope-batches", daemon=True)
        self._thread.start()

    @property
    def size(self) -> int:
        """Requests that wait or are computed."""
        with self._changed:
            return len(self._live())

    def _live(self) -> list[Work]:
        return [work for work in self._works if not work.gone]

    async def compute(self, task: Task, texts: list[Any], tokens: Sequence[int]) -> list[Any]:
        """The result of each text, in order. Cancelling it drops what has not been computed."""
        loop = asyncio.get_running_loop()
        work = Work(task, texts, tokens, loop.create_future(), loop)
        with self._changed:
            self._check_room(len(texts))
            self._works.append(work)
            self._changed.notify()
        try:
            return await work.future
        finally:
            work.gone = True

    def _check_room(self, texts: int) -> None:
        if self._closed:
            raise Refusal(503, "The server is shutting down; ask again in a moment.")
        live = self._live()
        waiting = sum(work.waiting for work in live)
        full = len(live) >= self.limits.waiting_requests
        if full or (waiting and waiting + texts > self.limits.waiting_texts):
            raise Refusal(429, f"{len(live):,} requests with {waiting:,} texts wait already; ask again in a moment.")

    def close(self) -> None:
        """Take nothing more, finish what waits, and end the thread."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        for number in itertools.count(1):
            with self._changed:
                batch = self._next_batch()
                while not batch and not self._closed:
                    self._changed.wait()
                    batch = self._next_batch()
            if not batch:
                return
            self._compute(batch)
            del batch
            return_memory(number)

    def _next_batch(self) -> Batch:
        """Rows for the next forward; the works that gave some go to the end of the queue."""
        self._works = deque(work for work in self._works if not work.gone and work.waiting)
        if not self._works:
            return []
        task = self._works[0].task
        same = [work for work in self._works if work.task is task]
        batch: Batch = []
        left = self.limits.batch_tokens
        for work in same:
            share = max(left // (len(same) - len(batch)), 1)
            count, tokens = _rows_within(work, share)
            batch.append((work, work.next, work.next + count))
            work.next += count
            left -= tokens
            if left <= 0:
                break
        others = [work for work in self._works if work.task is not task]
        taken = [work for work, _, _ in batch]
        self._works = deque([*others, *same[len(taken) :], *taken])
        if self.watcher is not None:
            self.watcher.batch(sum(end - start for _, start, end in batch), self.limits.batch_tokens - left)
        return batch

    def _compute(self, batch: Batch) -> None:
        texts = [text for work, start, end in batch for text in work.texts[start:end]]
        try:
            found = batch[0][0].task.run(texts)
        except Exception as error:
            if len(batch) == 1:
                batch[0][0].fail(error)
                return
            for part in batch:
                self._compute([part])
            return
        place = 0
        for work, start, end in batch:
            work.results.extend(found[place : place + end - start])
            place += end - start
            if len(work.results) == len(work.texts):
                work.finish()


def _rows_within(work: Work, tokens: int) -> tuple[int, int]:
    """How many of the next rows have at most so many tokens, at least one, and how many tokens these have."""
    count, total = 1, work.tokens[work.next]
    while count < work.waiting and total + work.tokens[work.next + count] <= tokens:
        total += work.tokens[work.next + count]
        count += 1
    return count, total
