"""Memory that is free inside the process goes back to the system.

glibc keeps what was freed for the next request: after a training run several hundred megabytes that nobody uses are
still counted as the process's, and pieces that live on between them hinder the next run from fitting in. Other C
libraries have no such call and need none.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache


@cache
def trimmer() -> Callable[[int], object] | None:
    """glibc's ``malloc_trim``, where there is one."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        found: Callable[[int], object] = ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None
    return found


@contextmanager
def returning_memory() -> Iterator[None]:
    """What the block has freed goes back when it ends, whatever ends it."""
    try:
        yield
    finally:
        return_free_memory()


def return_free_memory() -> None:
    """Some milliseconds; worth it where a stretch of work with large pieces has ended."""
    trim = trimmer()
    if trim is not None:
        trim(0)
