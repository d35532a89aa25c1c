"""What killed processes leave behind: temporary names, swept by the next process that writes in the same folder.

A writer holds a shared lock on the folder that it writes in, and the kernel frees that lock when the process dies. Who
can have the folder alone for a moment therefore knows that every temporary name in it is a left-over. Where the system
has no such locks nothing is swept.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

HAS_LOCKS = os.name == "posix"
if HAS_LOCKS:
    import fcntl

MARK = ".part-"
OLD = ".old"
TEMPORARY = re.compile(rf"\.(?P<target>.+){re.escape(MARK)}[a-z0-9_]{{8}}(\.[^.]*)*")


def is_temporary(name: str) -> bool:
    """Whether a name is one that ``written_file`` and ``written_folder`` write under."""
    return TEMPORARY.fullmatch(name) is not None


@contextmanager
def writing_in(folder: Path) -> Iterator[None]:
    """Inside the block temporary names in ``folder`` are safe from others; those of dead processes are swept first."""
    descriptor = _opened(folder)
    try:
        if descriptor is not None:
            if _locked(descriptor, alone=True):
                _sweep(folder)
            _locked(descriptor, alone=False)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def sweep(folder: Path) -> None:
    """Remove what dead processes left in a folder; nothing happens where somebody is writing."""
    with writing_in(folder):
        pass


def _opened(folder: Path) -> int | None:
    if not HAS_LOCKS:
        return None
    try:
        return os.open(folder, os.O_RDONLY)
    except OSError:
        return None


def _locked(descriptor: int, alone: bool) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB if alone else fcntl.LOCK_SH)
    except OSError:  # somebody writes there, or the file system has no locks
        return False
    return True


def _sweep(folder: Path) -> None:
    for entry in list(folder.iterdir()):
        found = TEMPORARY.fullmatch(entry.name)
        if found is None:
            continue
        if entry.name.endswith(OLD) and not (folder / found["target"]).exists():
            entry.rename(folder / found["target"])  # the process died between two renames: this is the last good one
        elif entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            with suppress(OSError):
                entry.unlink()
