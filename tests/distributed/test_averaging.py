"""Gradients are averaged over two processes without the host waiting for the device."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def test_gradients_are_averaged_and_no_host_waits_that_used_all() -> None:
    worker = Path(__file__).with_name("average_worker.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(worker)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240, check=False)
    assert done.returncode == 0, done.stderr[-6000:]
