"""What must be on the disk before a name says that it is there: files synced before they are renamed, folders swapped.

A rename that reaches the disk before the content does leaves, after a loss of power, a whole name and an empty file.
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

_HERE = -100  # AT_FDCWD
_EXCHANGE = 2  # RENAME_EXCHANGE


def sync(path: Path) -> None:
    """Wait until a file's content is on the disk; the same of the names in a folder, where the system can."""
    if path.is_dir() and os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Every file and folder below ``folder``, and itself."""
    for entry in folder.rglob("*"):
        sync(entry)
    sync(folder)


def exchange(first: Path, second: Path) -> bool:
    """Swap two names in one step; False where the system cannot. At no moment is either of them missing."""
    if sys.platform != "linux":
        return False
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    return swap is not None and swap(_HERE, os.fsencode(first), _HERE, os.fsencode(second), _EXCHANGE) == 0
