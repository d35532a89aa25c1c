"""Memory that batches of many shapes leave in pieces goes back to the system now and then.

glibc keeps freed memory of a thread in that thread's arena; batches of other shapes do not fit into the holes, and the
process grows by some megabytes every thousand requests. Other C libraries have no such call and need none.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Any

EVERY = 64  # batches


@cache
def _trim() -> Any:
    if not sys.platform.startswith("linux"):
        return None
    try:
        return ctypes.CDLL(None).malloc_trim
    except (OSError, AttributeError):
        return None


def return_memory(batches: int) -> None:
    """After each ``EVERY`` batches; a few milliseconds."""
    trim = _trim()
    if trim is not None and batches % EVERY == 0:
        trim(0)
