"""Two processes equal one: the gradient of a step, and a whole run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from safetensors.torch import load_file

import isotrope


@pytest.mark.filterwarnings("ignore:Training did not improve")
def test_two_processes_equal_one(tiny: Path, sentences: Path, triples: Path, tmp_path: Path) -> None:
    worker = Path(__file__).with_name("worker.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(worker)]
    arguments = [str(tiny), str(sentences), str(triples), str(tmp_path / "two")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "two" / "agreed").exists()

    alone = isotrope.train(
        "simcse-supervised", triples, model=tiny, output=tmp_path / "one", pooling="cls", max_steps=6, batch_size=16, eval_steps=3,
        held_out=20, learning_rate=1e-3, dropout=0.0, logging_steps=1,
    )  # fmt: skip
    logged = [json.loads(line) for line in (tmp_path / "two" / "metrics.jsonl").read_text().splitlines()]
    pairs = list(zip((line for line in logged if "loss" in line), (line for line in alone.history if "loss" in line), strict=True))
    assert len(pairs) == 6
    for two, one in pairs:
        assert two["candidates"] == one["candidates"] == 32  # the whole batch, not a process's half of it
        assert two["loss"] == pytest.approx(one["loss"], abs=1e-4 if two["step"] > 1 else 1e-5)
    assert pairs[0][0]["gradient_norm"] == pytest.approx(pairs[0][1]["gradient_norm"], rel=1e-5)
    first, second = (load_file(tmp_path / name / "model" / "model.safetensors") for name in ("two", "one"))
    # Adam divides by the root of tiny second moments, so rounding grows from step to step; the first step is the sharp test.
    assert all((first[name] - second[name]).abs().max() < 1e-3 for name in first)
