"""Suites side by side on a CPU: one encodes while another reads or scores, so that no core waits.

    suite 1   read · encode · score
    suite 2          read ·   encode · score
    suite 3            read ·          encode · score

At any time at most one suite encodes, and at most one reads or scores: suites share the random state of torch, the
filters of warnings and the bars. They encode in the order given, so each text has the vector that it would have if the
suites ran one after another in that order. A suite says ``with encoding():`` around what runs the model; outside such a
run the words do nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from threading import Event, Lock, Thread
from typing import Generic, TypeVar

import torch

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.group_threads import take_cores
from isotrope.progress import Stopped, stoppable

# Seconds that a thread in plain Python, as one that reads files, lets those that encode wait between two products; the
# usual 5 ms are as long as a product.
PATIENCE = 5e-4
Found = TypeVar("Found")


def pays(encoder: Encoder, suites: int) -> bool:
    """Whether there is something to overlap: several suites and cores. A GPU computes the scores of a suite as well."""
    return suites > 1 and encoder.device.type == "cpu" and torch.get_num_threads() > 1


@contextmanager
def encoding() -> Iterator[None]:
    """Inside the block this suite encodes, and another may read or score."""
    lane = _lane.get()
    if lane is None:
        yield
        return
    lane.begin()
    try:
        yield
    finally:
        lane.end()


def side_by_side(suites: Sequence[Callable[[], Found]]) -> list[Found]:
    """What each call gives. An error of one, or an interrupt, stops the others at the next move of a bar."""
    line = Line(len(suites), torch.get_num_threads())
    lanes = [Lane(line, number, suite) for number, suite in enumerate(suites)]
    with stoppable(line.stop):
        threads = [Thread(target=copy_context().run, args=(lane.run,), daemon=True) for lane in lanes]
    with quick_turns(), one_core_for_numpy():
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                thread.join()
        except BaseException:
            line.halt()
            for thread in threads:
                thread.join()
            raise
    if line.errors:
        raise line.errors[0]
    return [lane.found[0] for lane in lanes]


@contextmanager
def quick_turns() -> Iterator[None]:
    """Threads hand on Python sooner than usual."""
    patience = sys.getswitchinterval()
    sys.setswitchinterval(min(patience, PATIENCE))
    try:
        yield
    finally:
        sys.setswitchinterval(patience)


@contextmanager
def one_core_for_numpy() -> Iterator[None]:
    """Its products take one thread; the number is that of the whole process, and is set back."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        yield


class Line:
    """What the suites share: the desk to read and score at, the model, and who has encoded already."""

    def __init__(self, suites: int, cores: int) -> None:
        self.desk, self.model, self.stop = Lock(), Lock(), Event()
        self.encoded = [Event() for _ in range(suites)]
        self.errors: list[Exception] = []
        self.cores = cores

    def halt(self) -> None:
        self.stop.set()
        for event in self.encoded:
            event.set()


class Lane(Generic[Found]):
    """The way of one suite."""

    def __init__(self, line: Line, number: int, suite: Callable[[], Found]) -> None:
        self.line, self.number, self.suite = line, number, suite
        self.found: list[Found] = []

    def run(self) -> None:
        _lane.set(self)
        with self.line.desk:
            self._sit_down()
            try:
                self.found.append(self.suite())
            except Exception as error:
                self.line.errors.append(error)
                self.line.halt()
            finally:
                self.line.encoded[self.number].set()  # also where it never encoded

    def begin(self) -> None:
        self.line.desk.release()
        if self.number:
            self.line.encoded[self.number - 1].wait()
        self.line.model.acquire()
        if self.line.stop.is_set():
            self.line.model.release()
            self.line.desk.acquire()
            raise Stopped
        take_cores(self.line.cores, self.line.cores)

    def end(self) -> None:
        self.line.model.release()
        self.line.encoded[self.number].set()
        self.line.desk.acquire()
        self._sit_down()

    def _sit_down(self) -> None:
        """One core for scores, always: sums hang on the number of threads, and threads that share a core wait."""
        from threadpoolctl import threadpool_limits

        threadpool_limits(1, user_api="openmp")  # of scikit-learn, in this thread alone
        take_cores(1, self.line.cores)


_lane: ContextVar[Lane | None] = ContextVar("lane", default=None)  # type: ignore[type-arg]
