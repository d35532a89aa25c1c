"""Claims: who works on which shard, among any number of processes and machines that see one folder.

A claim is a file that only one process can create. Its owner touches it every few seconds. A claim is dead when its
process is gone (on this machine), or when nobody touched it for a minute (on another one; by the clock of whoever
waits, so that the clocks of two machines need not agree). A claim only saves work: two processes that make the same
shard write the same bytes, and the name is given in one step.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path

from isotrope.files import explained

BEAT = 5.0  # seconds between two touches
PATIENCE = 60.0  # seconds without one


class Claims:
    """The claims of one process in a folder; a context that frees what is held."""

    def __init__(self, folder: Path, patience: float = PATIENCE, beat: float = BEAT) -> None:
        self.folder, self.patience, self.beat = folder, patience, beat
        self.me = {"machine": _machine(), "process": os.getpid(), "began": _began(os.getpid())}
        self._held: set[Path] = set()
        self._seen: dict[Path, tuple[int, float]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._touch, daemon=True)

    def __enter__(self) -> Claims:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for path in list(self._held):
            self._free(path)

    def take(self, name: str) -> bool:
        """Whether this process has the claim now. That of a dead process is taken over."""
        path = self.folder / f"{name}.claim"
        if self._create(path):
            return True
        if not self._dead(path):
            return False
        grave = path.with_name(f"{path.name}-{uuid.uuid4().hex}")
        with suppress(FileNotFoundError):
            os.rename(path, grave)  # of several that bury it, one succeeds
            grave.unlink()
        return self._create(path)

    def free(self, name: str) -> None:
        self._free(self.folder / f"{name}.claim")

    def _create(self, path: Path) -> bool:
        with explained(path):
            try:
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
            except FileExistsError:
                return False
            try:
                os.write(handle, json.dumps(self.me).encode())
            finally:
                os.close(handle)
        self._held.add(path)
        self._seen.pop(path, None)
        return True

    def _free(self, path: Path) -> None:
        self._held.discard(path)
        path.unlink(missing_ok=True)

    def _dead(self, path: Path) -> bool:
        try:
            stamp = path.stat().st_mtime_ns
            owner = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return False
        except ValueError:
            owner = {}  # killed between the two calls that make a claim
        if isinstance(owner, dict) and owner.get("machine") == self.me["machine"]:
            began = _began(owner.get("process"))
            if began is None or began != owner.get("began"):
                return True
        before, since = self._seen.get(path, (0, 0.0))
        if before != stamp:
            self._seen[path] = (stamp, time.monotonic())
            return False
        return time.monotonic() - since > self.patience

    def _touch(self) -> None:
        while not self._ended.wait(self.beat):
            for path in list(self._held):
                with suppress(OSError):
                    os.utime(path)


def _machine() -> str:
    """Processes with the same one see each other: the same kernel since its start, the same namespace."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(parts)


def _began(process: object) -> str | None:
    """When a process began, by its kernel; None where there is none of that number. "" where nobody can say."""
    if not Path("/proc/self/stat").exists():
        return ""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else fields[19]
