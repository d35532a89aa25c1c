"""Child-Tuning D looks at batches of its own in each process: nobody waits for a batch that another does not have."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytestmark = pytest.mark.filterwarnings("ignore::isotrope.training.state.TrainingWarning")


def test_unequal_batches_end_and_give_the_masks_of_one_process(tiny: Path, sentences: Path, tmp_path: Path) -> None:
    """Three batches for two processes, each with the statistics of its own rows, as one process takes them."""
    worker = Path(__file__).with_name("fisher_worker.py")
    given = [str(tiny), str(sentences)]
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(worker)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [*command, *given, str(tmp_path / "two"), str(tmp_path / "masks")],
        capture_output=True, text=True, env=environment, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-6000:]
    sys.path.insert(0, str(worker.parent))
    try:
        from fisher_worker import masks_of
    finally:
        sys.path.pop(0)
    alone = masks_of(*given, str(tmp_path / "one"))
    first, second = (torch.load(tmp_path / f"masks-{rank}.pt", weights_only=True) for rank in (0, 1))
    assert all(torch.equal(first[name], second[name]) for name in alone)
    equal = [float((mask == first[name]).float().mean()) for name, mask in alone.items()]
    assert min(equal) > 0.999  # sums of two halves differ in their last bits
