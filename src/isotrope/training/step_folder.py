"""One checkpoint on disk, step-N: weights, moments, the tactics' and the loop's states, and the checksums of all.

Nothing is unpickled: tensors are safetensors, or read with ``weights_only``.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from isotrope.checksums import damage, sum_of, sums_of
from isotrope.errors import InputError
from isotrope.files import write_json, written_folder
from isotrope.towers.keeping import Tower

WEIGHTS, OPTIMISER, TACTICS, STATE, SUMS = (
    "weights.safetensors",
    "optimiser.pt",
    "tactics.pt",
    "state.json",
    "checksums.json",
)
NAME = re.compile(r"step-(\d+)")


class StepFolder:
    """step-N of a folder of checkpoints."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.step = int(folder.name.removeprefix("step-"))

    def write(
        self, module: nn.Module, optimiser: torch.optim.Optimizer, state: dict[str, Any], tactics: dict[str, Any]
    ) -> None:
        with written_folder(self.folder) as temporary:
            save_file(weights_of(module), temporary / WEIGHTS)
            torch.save(optimiser.state_dict(), temporary / OPTIMISER)
            if tactics:
                torch.save(tactics, temporary / TACTICS)
            # Python alone reads it, and a score that was never taken is −∞, which strict JSON does not have.
            (temporary / STATE).write_text(json.dumps(state, indent=2), encoding="utf-8")
            write_json(temporary / SUMS, sums_of(temporary.iterdir()))

    def damage(self) -> str | None:
        """What keeps a run from going on from here, in words; None where it is whole."""
        try:
            sums = json.loads((self.folder / SUMS).read_text(encoding="utf-8"))
            found = damage(self.folder, sums) if {WEIGHTS, OPTIMISER, STATE} <= set(sums) else f"{SUMS} is not whole"
        except (OSError, ValueError, TypeError):
            return f"{SUMS} is missing or damaged"
        return found or self._damage_of_best()

    def _damage_of_best(self) -> str | None:
        """The best weights until then belong to it: the run ends with them."""
        state = self.state()
        if not state.get("best_file"):
            return None
        file = self.folder.parent / f"best-{state['best_step']}.safetensors"
        if not file.is_file():
            return f"{file.name}, its best weights, is missing"
        return None if sum_of(file) == state["best_file"] else f"{file.name}, its best weights, is damaged"

    def state(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / STATE).read_text(encoding="utf-8")))

    def tactics(self) -> dict[str, Any]:
        """The states of tactics, by the tactic's name."""
        file = self.folder / TACTICS
        return dict(torch.load(file, weights_only=True, map_location="cpu")) if file.is_file() else {}

    def load(self, module: nn.Module, optimiser: torch.optim.Optimizer) -> dict[str, Any]:
        """Put weights and moments back; gives the loop's own state."""
        put_weights(module, load_file(self.folder / WEIGHTS))
        optimiser.load_state_dict(torch.load(self.folder / OPTIMISER, weights_only=True, map_location="cpu"))
        return self.state()

    def set_aside(self) -> str:
        """Rename a damaged checkpoint, so that nothing is lost; gives its new name."""
        names = (f"damaged-{self.folder.name}{suffix}" for suffix in ("", *(f"-{n}" for n in range(2, 1000))))
        name = next(name for name in names if not (self.folder.parent / name).exists())
        self.folder.rename(self.folder.parent / name)
        return name


def steps_in(checkpoints: Path) -> list[StepFolder]:
    """The checkpoints of a run, the newest last."""
    found = [StepFolder(place) for place in checkpoints.glob("step-*") if NAME.fullmatch(place.name)]
    return sorted(found, key=lambda one: one.step)


def weights_of(module: nn.Module) -> dict[str, Tensor]:
    """Every tensor once, however many names it has (tied embeddings, shared towers)."""
    named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    return {name: tensor.detach().cpu().contiguous() for name, tensor in named.items()}


@torch.no_grad()
def put_weights(module: nn.Module, weights: dict[str, Tensor]) -> None:
    named = {**dict(module.named_parameters()), **dict(module.named_buffers())}
    if named.keys() != weights.keys():
        raise InputError("The checkpoint was written by another method or model; it does not fit.")
    for name, tensor in named.items():
        tensor.copy_(weights[name])
    for part in module.modules():
        if isinstance(part, Tower):
            part.after_restore()
