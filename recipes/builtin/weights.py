"""What is done to finished weights: the mean over runs, more or fewer layers, and the packing that ships.

python recipes/builtin/weights.py average OUTPUT MODEL…      θ = mean of the models' θ; they must come from one start
python recipes/builtin/weights.py layers OUTPUT MODEL COUNT  more: each layer several times (Gong et al. 2019); fewer:
                                                             every second one, and the last; the head goes along
python recipes/builtin/weights.py pack OUTPUT MODEL          8-bit rows with a scale each, of a static student too
python recipes/builtin/weights.py pack-base OUTPUT MODEL     the same; the masked-language head goes along
"""

from __future__ import annotations

import copy
import sys
import warnings
from pathlib import Path

import torch
from torch import nn

import isotrope
from isotrope.encoders.language_head import MissingHeadError, NewHeadWarning
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


def layers(output: Path, model: str, count: str) -> None:
    """Copies of a layer follow it, as its neighbours are the nearest to it; of 12 layers 6 are the 2nd, 4th, … 12th."""
    encoder = isotrope.load(model, device="cpu", language_head=_has_head(model))
    before, wanted = encoder.backbone.encoder.layer, int(count)
    if wanted >= len(before):
        chosen = [place * len(before) // wanted for place in range(wanted)]
    else:
        chosen = [(place + 1) * len(before) // wanted - 1 for place in range(wanted)]
    encoder.backbone.encoder.layer = nn.ModuleList([copy.deepcopy(before[place]) for place in chosen])
    encoder.backbone.config.num_hidden_layers = wanted
    encoder.save(output)


def _has_head(model: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error", NewHeadWarning)
        try:
            isotrope.load(model, device="cpu", language_head=True)
        except (NewHeadWarning, MissingHeadError):
            return False
    return True


def pack(output: Path, model: str) -> None:
    write_packed(isotrope.load(model, device="cpu"), output)


def pack_base(output: Path, model: str) -> None:
    write_packed(isotrope.load(model, device="cpu", language_head=True), output)


if __name__ == "__main__":
    stage, output, *models = sys.argv[1:]
    {"average": average, "layers": layers, "pack": pack, "pack-base": pack_base}[stage](Path(output), *models)
