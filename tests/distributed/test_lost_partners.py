"""Processes that train together: they refuse to begin unalike, and none goes on alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

LAUNCH = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
LOOP = "--batch-size 16 --held-out 40 --max-length 24 --eval-steps 500000 --logging-steps 1 --max-steps 1000000"
UNALIKE = """
import os, sys
from isotrope.cli import main
text, other, model, output = sys.argv[1:]
mine = text if os.environ["RANK"] == "0" else other
main(["train", "simcse", mine, "--model", model, "--output", output, *"{loop}".split()])
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks into /proc")


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory, topics: list[str]) -> Path:
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("\n".join(topics[:200]) + "\n", encoding="utf-8")
    return file


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "ISOTROPE_CACHE": str(folder / "cache")}


def until(true: Callable[[], bool], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.1)
    return False


def children(process: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == process and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return sorted(found)


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


@contextmanager
def training(text: Path, model: Path, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], list[int]]]:
    """A launcher and its two processes, which have taken some steps."""
    command = [*LAUNCH, "-m", "isotrope", "train", "simcse", str(text), "--model", str(model), *LOOP.split()]
    with open(folder / "log.txt", "wb") as log:
        launcher = subprocess.Popen(
            [*command, "--output", str(folder / "run")], stderr=log, stdout=log, env=environment(folder)
        )
        ranks: list[int] = []
        try:
            lines = folder / "run" / "metrics.jsonl"
            assert until(lambda: lines.is_file() and lines.read_text().count("\n") > 3, 300), said(folder)
            ranks = children(launcher.pid)
            assert len(ranks) == 2
            yield launcher, ranks
        finally:
            for process in (launcher.pid, *ranks):
                if runs(process):
                    os.kill(process, signal.SIGKILL)
            launcher.wait()


def said(folder: Path) -> str:
    return (folder / "log.txt").read_text(errors="replace")


def test_a_killed_process_ends_the_others_with_a_sentence(tiny: Path, text: Path, tmp_path: Path) -> None:
    with training(text, tiny, tmp_path) as (launcher, ranks):
        os.kill(ranks[1], signal.SIGKILL)
        assert until(lambda: launcher.poll() is not None, 60)
        assert launcher.returncode != 0
        assert not any(map(runs, ranks))
    assert "isotrope: Another process of this run has ended" in said(tmp_path)


def test_a_killed_launcher_ends_its_processes(tiny: Path, text: Path, tmp_path: Path) -> None:
    with training(text, tiny, tmp_path) as (launcher, ranks):
        launcher.kill()
        assert until(lambda: not any(map(runs, ranks)), 60)
    assert "the launcher of this process is gone" in said(tmp_path)
    assert list((tmp_path / "run" / "checkpoints").glob("step-*"))  # what they had, they saved


def test_a_process_with_other_data_is_refused_at_the_start(tiny: Path, text: Path, tmp_path: Path) -> None:
    script, other = tmp_path / "unalike.py", tmp_path / "other.txt"
    script.write_text(UNALIKE.replace("{loop}", LOOP), encoding="utf-8")
    other.write_text(text.read_text().replace("the", "a"), encoding="utf-8")
    ended = subprocess.run(
        [*LAUNCH, str(script), str(text), str(other), str(tiny), str(tmp_path / "run")],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        timeout=300,
        check=False,
    )
    assert ended.returncode != 0
    assert "isotrope: Process 1 differs from process 0 in its data" in ended.stderr
    assert not (tmp_path / "run").exists()
