"""What a run tells its user while it works: a progress bar, at a terminal only, and lines of the log."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Lock
from typing import Any, Protocol

from isotrope.terminal import console, visible


class Advance(Protocol):
    """Move the bar by ``amount``; ``note`` is shown at its end until the next one, ``total`` is the new end."""

    def __call__(self, amount: int = 1, note: str = "", total: int | None = None) -> None: ...


SPEED_PERIOD = 24 * 3600.0  # seconds that the rate of a bar is taken over; at most its last 1000 moves
FIRST_LINE, LONGEST_WAIT = 10.0, 300.0  # seconds between the lines that stand for a bar
_hidden = False
_label: ContextVar[str] = ContextVar("label", default="")
_stop: ContextVar[Event | None] = ContextVar("stop", default=None)
_shown = Lock()  # held by the bar at the terminal: a second one would write over it
_log = logging.getLogger("isotrope")


def say(sentence: str) -> None:
    """One line of the log, at level INFO of the logger "isotrope"; the command line shows it on standard error."""
    if not _hidden:
        _log.info(sentence)


class ProgressLines:
    """The bar of a run without a terminal: a line after ten seconds, then at growing distances up to five minutes."""

    def __init__(
        self, label: str, total: int | None, start: int = 0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.label, self.total, self.done, self.first, self.clock = label, total, start, start, clock
        self.began = clock()
        self.note, self.wait = "", FIRST_LINE
        self.due = self.began + self.wait

    def __call__(self, amount: int = 1, note: str = "", total: int | None = None) -> None:
        self.done += amount
        self.note, self.total = note or self.note, self.total if total is None else total
        now = self.clock()
        if now < self.due:
            return
        self.wait = min(2 * self.wait, LONGEST_WAIT)
        self.due = now + self.wait
        say(self.line(now - self.began))

    def line(self, seconds: float) -> str:
        """What was done, at which rate, and how long the rest takes."""
        of = "" if self.total is None else f" of {self.total:,}"
        parts = [f"{self.label}: {self.done:,}{of}"]
        rate = (self.done - self.first) / seconds if seconds > 0 else 0.0
        if rate > 0:
            parts.append(f"{rate:,.1f}/s" if rate >= 1 else f"{1 / rate:,.1f} s each")
            if self.total is not None:
                parts.append(f"{spoken_time((self.total - self.done) / rate)} left")
        return ", ".join([*parts, *([self.note] if self.note else [])])


def spoken_time(seconds: float) -> str:
    """42 s, 3 min, 1 h 20 min."""
    if seconds < 90:
        return f"{max(round(seconds), 0)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _nothing(amount: int = 1, note: str = "", total: int | None = None) -> None:
    """The bar that nobody sees."""


@contextmanager
def hidden() -> Iterator[None]:
    """Show no bars inside the block: two bars at once would write over each other."""
    global _hidden
    before, _hidden = _hidden, True
    try:
        yield
    finally:
        _hidden = before


@contextmanager
def labelled(name: str) -> Iterator[None]:
    """Bars inside the block begin with ``name``: what is being done, where many things are done one after another."""
    token = _label.set(f"{_label.get()}{name}: ")
    try:
        yield
    finally:
        _label.reset(token)


class Stopped(Exception):
    """Work in a thread was asked to stop."""


@contextmanager
def stoppable(stop: Event) -> Iterator[None]:
    """Bars made inside the block, or in a context copied inside it, raise ``Stopped`` at their next move once ``stop``
    is set: a thread cannot be interrupted otherwise.
    """
    token = _stop.set(stop)
    try:
        yield
    finally:
        _stop.reset(token)


@contextmanager
def bar(label: str, total: int | None, start: int = 0, show: bool | None = None) -> Iterator[Advance]:
    """Yield a function that moves the bar. ``show=None``: only where standard error is a terminal.

    Elsewhere, as in a pipe or the log of a job, lines of the log take its place: one now and then, with the time left.
    While another bar is shown, by another thread, there is none.
    """
    stop = _stop.get()
    with _bar(label, total, start, show) as advance:
        if stop is None:
            yield advance
            return

        def checked(amount: int = 1, note: str = "", total: int | None = None) -> None:
            if stop.is_set():
                raise Stopped
            advance(amount, note, total)

        yield checked


@contextmanager
def _bar(label: str, total: int | None, start: int, show: bool | None) -> Iterator[Advance]:
    named = f"{_label.get()}{label}"
    if _hidden or not (sys.stderr.isatty() if show is None else show):
        yield ProgressLines(named, total, start) if not _hidden and show is not False else _nothing
        return
    if not _shown.acquire(blocking=False):
        yield _nothing
        return
    try:
        with _rich_bar(named, total, start) as advance:
            yield advance
    finally:
        _shown.release()


@contextmanager
def _rich_bar(named: str, total: int | None, start: int) -> Iterator[Advance]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    # What moves once in minutes, such as a comparison, has a rate and a time left too: rich forgets after 30 seconds.
    with Progress(
        *columns, console=console(stderr=True), transient=True, speed_estimate_period=SPEED_PERIOD
    ) as progress:
        task = progress.add_task(visible(named), total=total, completed=start, rate="", note="")

        def advance(amount: int = 1, note: str = "", total: int | None = None) -> None:
            speed = progress.tasks[0].speed
            rate = "" if not speed else f"{speed:,.0f}/s" if speed >= 1 else f"{1 / speed:,.0f} s each"
            fields: dict[str, Any] = {"rate": rate}
            if note:
                fields["note"] = visible(note)
            if total is not None:
                fields["total"] = total
            progress.update(task, advance=amount, **fields)

        yield advance
