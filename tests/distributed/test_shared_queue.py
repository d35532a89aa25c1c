"""Two processes keep one queue: equal in both, and equal to that of one process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import isotrope

SETTINGS: dict[str, Any] = {
    "projection": 16, "queue": 40, "batch_size": 16, "max_steps": 4, "eval_steps": 4, "logging_steps": 1, "held_out": 40,
    "learning_rate": 1e-3, "dropout": 0.0, "edits": "none", "momentum": 0.9,
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_two_processes_keep_the_queue_of_one(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    worker = Path(__file__).with_name("queue_worker.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(worker)]
    arguments = [str(tiny), str(sentences), str(tmp_path / "two"), json.dumps(SETTINGS)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "two" / "agreed").exists()

    alone = isotrope.train("moco", sentences, model=tiny, output=tmp_path / "one", **SETTINGS)
    two, one = (load_file(tmp_path / name / "checkpoints" / "step-4" / "weights.safetensors") for name in ("two", "one"))
    assert int(two["place"]) == int(one["place"]) == 4 * 16 % 40
    assert torch.allclose(two["queue"], one["queue"], atol=1e-3)
    logged = [json.loads(line) for line in (tmp_path / "two" / "metrics.jsonl").read_text().splitlines()]
    losses = [[line["loss"] for line in lines if "loss" in line] for lines in (logged, alone.history)]
    assert losses[0] == pytest.approx(losses[1], abs=1e-3)
    assert losses[0][0] == pytest.approx(losses[1][0], abs=1e-5)
