"""Run by torchrun in two processes: the gradient of SimCLR on images, batch norm over both.

torchrun --nproc-per-node 2 image_worker.py IMAGES OUTPUT
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from isotrope.data.corpus import Records
from isotrope.data.image_corpus import ImageCorpus, open_images
from isotrope.encoders.image_encoder import fresh_image_encoder
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.methods.frame.method_registry import find
from isotrope.training.gathering import average_gradients
from isotrope.training.loop import make_accelerator
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.optimiser import trainable
from isotrope.training.step import compute_gradient

COUNT = 16


def build(file: str) -> tuple[Combined, ImageCorpus]:
    corpus = open_images(file, "images", 16)
    method = find("simclr")
    torch.manual_seed(0)
    return Combined(method(method.Settings(), fresh_image_encoder("conv:4", 16), None, corpus)).train(), corpus


def half(combined: Combined, corpus: ImageCorpus, rank: int) -> Batch:
    rows = list(range(rank * COUNT // 2, (rank + 1) * COUNT // 2))
    return Batch(combined.views(Records(corpus, rows), np.random.default_rng([0, rank])), len(rows), 5)


def found(combined: Combined) -> dict[str, torch.Tensor]:
    gradients = {f"grad {name}": one.grad for name, one in combined.named_parameters() if one.grad is not None}
    statistics = {name: one.float() for name, one in combined.named_buffers() if "running" in name}
    return {name: one.detach().clone().contiguous() for name, one in {**gradients, **statistics}.items()}


def main() -> None:
    accelerator = make_accelerator(LoopSettings(precision="float32"))
    combined, corpus = build(sys.argv[1])
    compute_gradient(combined, half(combined, corpus, accelerator.process_index), accelerator, (0, 0, 0))
    average_gradients(trainable(combined))
    if accelerator.is_main_process:
        save_file(found(combined), Path(sys.argv[2]))
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
