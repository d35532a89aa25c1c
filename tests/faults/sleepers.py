"""A comparison whose workers sleep: started by a test that ends it and looks whether the workers end with it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path


class Sleeping:
    """A task that says which process has it, and sleeps."""

    label, seed = "sleeping", 1

    def __init__(self, said: Path) -> None:
        self.said = said

    @property
    def folder(self) -> Path:
        self.said.write_text(str(os.getpid()))
        time.sleep(120)
        raise AssertionError("nobody interrupted it")


def main(folder: Path) -> None:
    from isotrope.comparison.workers import run_all

    for number in (signal.SIGTERM, signal.SIGINT):  # as the command line does, also where it starts with Ctrl-C ignored
        signal.signal(number, signal.default_int_handler)
    for _ in run_all([Sleeping(folder / "first"), Sleeping(folder / "second")], parallel=2):  # type: ignore[list-item]
        pass


if __name__ == "__main__":
    main(Path(sys.argv[1]))
