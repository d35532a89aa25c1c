"""Two processes equal one on images: batch norm, gathering and gradients, with views of each process's own draws."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import torch
from image_worker import build, found, half
from safetensors.torch import load_file

from isotrope.methods.frame.batch import Batch
from isotrope.training.loop import make_accelerator
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.step import compute_gradient
from isotrope.views.image_views import ImageView


def joined(first: ImageView, second: ImageView) -> ImageView:
    draws = tuple(
        {name: torch.cat([one[name], other[name]]) for name in one}
        for one, other in zip(first.draws, second.draws, strict=True)
    )
    return replace(first, pixels=torch.cat([first.pixels, second.pixels]), draws=draws)


def test_gradients_and_statistics_of_two_processes_are_those_of_one(image_file: Path, tmp_path: Path) -> None:
    worker = Path(__file__).with_name("image_worker.py")
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(worker)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    arguments = [str(image_file), str(tmp_path / "two.safetensors")]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    two = load_file(tmp_path / "two.safetensors")

    combined, corpus = build(str(image_file))
    first, second = (half(combined, corpus, rank) for rank in range(2))
    views = {name: joined(first[name], second[name]) for name in first.views}
    whole = Batch(views, first.size + second.size, 5)
    compute_gradient(combined, whole, make_accelerator(LoopSettings(precision="float32")), (0, 0, 0))
    one = found(combined)
    assert one.keys() == two.keys()
    assert any(name.startswith("grad") and float(value.norm()) > 1e-3 for name, value in one.items())
    for name, value in one.items():
        assert torch.allclose(value, two[name], atol=1e-5, rtol=1e-3), name
