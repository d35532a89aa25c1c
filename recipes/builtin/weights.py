"""What is done to finished weights: the mean over runs, more or fewer layers, and the packing that ships.

weights.py average OUTPUT MODEL…               θ = mean of the models' θ; they must come from one start
weights.py between OUTPUT SHARE BASE MODEL     θ = SHARE · MODEL + (1 − SHARE) · BASE (Wortsman et al. 2022)
weights.py layers OUTPUT MODEL COUNT           more: each layer several times (Gong et al. 2019); fewer: every second
                                               one, and the last; the head goes along
weights.py pack OUTPUT MODEL                   8-bit rows with a scale each, of a static student too
weights.py pack-base OUTPUT MODEL              the same; the masked-language head goes along
"""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from torch import nn

import isotrope
from isotrope.encoders.language_head import MissingHeadError, NewHeadWarning
from isotrope.encoders.packed import write_packed


def average(output: Path, *models: str) -> None:
    _weighed(output, models, [1 / len(models)] * len(models))


def between(output: Path, share: str, base: str, model: str) -> None:
    """What training moved, taken back in part: texts unlike those it saw gain, texts like them lose."""
    _weighed(output, (base, model), [1 - float(share), float(share)])


def _weighed(output: Path, models: Sequence[str], shares: Sequence[float]) -> None:
    """The last model with the weighted mean of all models' weights."""
    encoders = [isotrope.load(model, device="cpu") for model in models]
    weights = [encoder.state_dict() for encoder in encoders]
    mean = {
        name: sum(share * one[name].double() for share, one in zip(shares, weights, strict=True)).to(tensor.dtype)
        if tensor.is_floating_point()
        else tensor
        for name, tensor in weights[-1].items()
    }
    encoders[-1].load_state_dict(mean)
    encoders[-1].save(output)


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
    stage, output, *rest = sys.argv[1:]
    stages = {"average": average, "between": between, "layers": layers, "pack": pack, "pack-base": pack_base}
    stages[stage](Path(output), *rest)
