"""Workers end with the comparison that started them, however it ends."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "sleepers.py"


def until(true: Callable[[], bool], seconds: float = 90) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.1)
    return False


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT])
def test_workers_end_with_their_comparison(tmp_path: Path, ending: signal.Signals) -> None:
    files = [tmp_path / "first", tmp_path / "second"]
    with subprocess.Popen([sys.executable, str(SCRIPT), str(tmp_path)], stderr=subprocess.DEVNULL) as comparison:
        assert until(lambda: all(file.is_file() and file.read_text() for file in files))
        workers = [int(file.read_text()) for file in files]
        assert all(map(runs, workers))
        comparison.send_signal(ending)
        try:
            comparison.wait(timeout=60)
        finally:
            comparison.kill()  # what did not end would be waited for without end
    assert until(lambda: not any(map(runs, workers)), seconds=30)
