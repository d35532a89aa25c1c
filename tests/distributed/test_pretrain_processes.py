"""Pre-training in two processes: both tasks run to the end, learn, and resume."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import isotrope

SETTINGS = {
    "vocabulary": 300,
    "layers": 2,
    "width": 32,
    "heads": 2,
    "length": 32,
    "batch-size": 16,
    "steps": 30,
    "warmup-steps": 2,
    "save-steps": 10,
    "logging-steps": 5,
    "learning-rate": 3e-3,
}
pytestmark = pytest.mark.xdist_group("two processes")


def torchrun(*words: str) -> str:
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "isotrope"]
    settings = [word for name, value in SETTINGS.items() for word in (f"--{name}", str(value))]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*command, *words, *settings], capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("tasks", ["mlm", "mlm,nsp"])
def test_two_processes_pretrain_together_and_resume(tasks: str, topics: list[str], tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n\n".join("\n".join(topics[i : i + 2]) for i in range(0, 1200, 2)) + "\n", encoding="utf-8")
    words = ["pretrain", str(text), "--output", str(tmp_path / "run"), "--tasks", tasks]
    assert "continues from here" in torchrun(*words, "--minutes", "1e-9")
    torchrun(*words, "--resume")
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    held = [line["evaluation"]["held_out_loss"] for line in lines if "evaluation" in line]
    assert [line["step"] for line in lines if "evaluation" in line] == [0, 1, 10, 20, 30]
    assert held[-1] < 0.9 * held[0]
    assert isotrope.load(tmp_path / "run" / "model").encode("the chef bakes").shape == (32,)
