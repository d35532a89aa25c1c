"""The FSDP recipe on two processes: the losses of one process with the whole batch, and a model that loads."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import isotrope
from isotrope.objectives import info_nce

RECIPE = Path(__file__).parents[2] / "recipes" / "fsdp" / "train.py"
STEPS, BATCH, RATE = 4, 8, 1e-2


def test_two_processes_with_half_the_weights_equal_one(still: Path, topics: list[str], tmp_path: Path) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(topics[:24]) + "\n", encoding="utf-8")
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(RECIPE)]
    options = f"--model {still} --steps {STEPS} --batch-size {BATCH} --learning-rate {RATE}".split()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    ended = subprocess.run(
        [*launch, str(text), str(tmp_path / "model"), *options],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    found = re.search(r"loss ([\d.]+) at the start, ([\d.]+) after", ended.stdout)
    assert found is not None, ended.stdout
    alone = losses(still, topics[:24])
    assert alone[0] - alone[-1] > 0.01
    assert [float(loss) for loss in found.groups()] == pytest.approx([alone[0], alone[-1]], abs=2e-4)
    vectors = isotrope.load(tmp_path / "model", device="cpu").encode(topics[:4])
    assert abs(vectors - isotrope.load(still, device="cpu").encode(topics[:4])).max() > 1e-3


def losses(model: Path, texts: list[str]) -> list[float]:
    """The same by hand, in this process."""
    encoder = isotrope.load(model, device="cpu").train()
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=RATE)
    found, batches = [], runpy.run_path(str(RECIPE))["batches"](texts, BATCH, 42)
    for number in range(STEPS):
        tokens = encoder.tokenize(batches[number % len(batches)], 64)
        loss = info_nce(encoder(tokens), encoder(tokens))
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        found.append(float(loss.detach()))
    return found
