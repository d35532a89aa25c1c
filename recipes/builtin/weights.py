"""What is done to finished weights: the mean over runs, and the packing that ships.

python recipes/builtin/weights.py average OUTPUT MODEL…      θ = mean of the models' θ; they must come from one start
python recipes/builtin/weights.py pack OUTPUT MODEL          8-bit rows with a scale each, of a static student too
python recipes/builtin/weights.py pack-base OUTPUT MODEL     the same; the masked-language head goes along
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

import isotrope
from isotrope.encoders.packed import write_packed


def average(output: Path, *models: str) -> None:
    encoders = [isotrope.load(model, device="cpu") for model in models]
    weights = [encoder.state_dict() for encoder in encoders]
    mean = {
        name: torch.stack([one[name] for one in weights]).mean(0) if tensor.is_floating_point() else tensor
        for name, tensor in weights[0].items()
    }
    encoders[0].load_state_dict(mean)
    encoders[0].save(output)


def pack(output: Path, model: str) -> None:
    write_packed(isotrope.load(model, device="cpu"), output)


def pack_base(output: Path, model: str) -> None:
    write_packed(isotrope.load(model, device="cpu", language_head=True), output)


if __name__ == "__main__":
    stage, output, *models = sys.argv[1:]
    {"average": average, "pack": pack, "pack-base": pack_base}[stage](Path(output), *models)
