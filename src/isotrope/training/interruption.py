"""What Ctrl-C and a scheduler's SIGTERM mean while a run trains: finish the step, save, stop."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from accelerate import Accelerator

ASKED_BY = (signal.SIGINT, signal.SIGTERM)
ECHO = 1.0  # seconds: a launcher passes on what the terminal or the scheduler has already sent to everybody


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """The first signal lets the step finish and be saved; a second one, a moment later, stops at once."""
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    asked: list[float] = []

    def note(number: int, frame: Any) -> None:
        if not asked:
            asked.append(time.monotonic())
        elif time.monotonic() - asked[0] > ECHO:
            restore()
            raise KeyboardInterrupt

    before = {number: signal.signal(number, note) for number in ASKED_BY}

    def restore() -> None:
        for number, handler in before.items():
            # None: not set from Python, but by a program that Python runs in; it cannot be put back from here.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    try:
        yield lambda: bool(asked)
    finally:
        restore()


def stops(asked: bool, due: bool, accelerator: Accelerator) -> bool:
    """Whether the run stops after this step. Several processes agree on it whenever a line of the log is ``due``."""
    if accelerator.num_processes == 1:
        return asked
    if not due:
        return False
    verdict = torch.tensor(float(asked), device=accelerator.device)
    torch.distributed.all_reduce(verdict, torch.distributed.ReduceOp.MAX)
    return bool(verdict)
