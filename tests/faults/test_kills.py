"""A few moments of the script that kills commands; 200 of them are run by hand (docs/notes/faults.md)."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent / "kill.py"
COMMANDS = ["train", "pretrain", "encode", "encode --shards", "fit-space", "index", "train head", "export", "compare"]


@pytest.mark.skipif(not hasattr(sys, "addaudithook") or sys.platform == "win32", reason="needs fork")
def test_commands_that_are_killed_leave_nothing_half_written_and_end_the_same(tmp_path: Path) -> None:
    arguments = ["--moments", "6", "--commands", ",".join(COMMANDS), "--folder", str(tmp_path)]
    ended = subprocess.run([sys.executable, str(SCRIPT), *arguments], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-1000:]
    rows = re.findall(
        r"^\| `([\w -]+)` \| (\d+) \| (\d+) \| \d+ \| \d+ \| (\d+) \| (\d+) \| (\d+) \|$", ended.stdout, re.M
    )
    assert [name for name, *_ in rows] == COMMANDS
    for _, trials, moments, half, equal, left in rows:
        assert int(moments) >= 1
        assert (half, left) == ("0", "0")
        assert equal == trials
