"""A lock on a folder: one process at a time works in it. The kernel frees it when the process dies, however it dies.

Where the system has no such locks (Windows, some network disks) nothing is locked.
"""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from pathlib import Path

from isotrope.errors import InputError

HAS_LOCKS = os.name == "posix"
if HAS_LOCKS:
    import fcntl

LOCK = ".lock"


class FolderLock:
    """Held from ``take`` to ``release``. The file is gone afterwards; one that a killed process left is no obstacle."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file = folder, folder / LOCK
        self.descriptor: int | None = None

    def take(self) -> None:
        """Lock the folder, which must exist; refused where another process has it."""
        if not self.try_take():
            raise InputError(
                f"{self.folder}: another process is at work in this folder; wait until it ends, or stop it with Ctrl-C."
            )

    def try_take(self) -> bool:
        while self.descriptor is None and HAS_LOCKS:
            descriptor = os.open(self.file, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                return error.errno not in (errno.EAGAIN, errno.EACCES)
            if self._is_named(descriptor):
                self.descriptor = descriptor
            else:  # its owner removed it between our two calls: that lock guards no name
                os.close(descriptor)
        return True

    def release(self) -> None:
        if self.descriptor is not None:
            self.file.unlink(missing_ok=True)
            os.close(self.descriptor)
            self.descriptor = None

    def _is_named(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(self.file))
        except FileNotFoundError:
            return False


def wait_until_free(folder: Path, seconds: float = 60) -> None:
    """Give a process that was asked to stop the time to save and leave; whoever comes next refuses a folder in use."""
    until = time.monotonic() + seconds
    while folder.is_dir() and time.monotonic() < until:
        lock, free = FolderLock(folder), True
        with suppress(OSError):
            free = lock.try_take()
        lock.release()
        if free:
            return
        time.sleep(0.2)
