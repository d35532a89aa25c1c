"""What a run tells its user while it works: a progress bar, at a terminal only, and lines of the log."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from isotrope.terminal import console, visible


class Advance(Protocol):
    """Move the bar by ``amount``; ``note`` is shown at its end until the next one."""

    def __call__(self, amount: int = 1, note: str = "") -> None: ...


SPEED_PERIOD = 24 * 3600.0  # seconds that the rate of a bar is taken over; at most its last 1000 moves
_hidden = False
_label = ""
_log = logging.getLogger("isotrope")


def say(sentence: str) -> None:
    """One line of the log, at level INFO of the logger "isotrope"; the command line shows it on standard error."""
    if not _hidden:
        _log.info(sentence)


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
    global _label
    before, _label = _label, f"{_label}{name}: "
    try:
        yield
    finally:
        _label = before


@contextmanager
def bar(label: str, total: int | None, start: int = 0, show: bool | None = None) -> Iterator[Advance]:
    """Yield a function that moves the bar. ``show=None``: only where standard error is a terminal."""
    if _hidden or not (sys.stderr.isatty() if show is None else show):
        yield lambda amount=1, note="": None
        return
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
        task = progress.add_task(visible(f"{_label}{label}"), total=total, completed=start, rate="", note="")

        def advance(amount: int = 1, note: str = "") -> None:
            speed = progress.tasks[0].speed
            rate = "" if not speed else f"{speed:,.0f}/s" if speed >= 1 else f"{1 / speed:,.0f} s each"
            fields: dict[str, Any] = {"rate": rate}
            if note:
                fields["note"] = visible(note)
            progress.update(task, advance=amount, **fields)

        yield advance
