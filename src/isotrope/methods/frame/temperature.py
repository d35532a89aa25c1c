"""A temperature that is learned with the rest (CLIP, Radford et al. 2021), for any method that has one."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from isotrope.errors import InputError
from isotrope.towers.keeping import Tower, Trained

if TYPE_CHECKING:
    from isotrope.methods.frame.method import Method

LOWEST, HIGHEST = 0.01, 1.0  # CLIP's bounds
# Times the loop's rate: at 1e-4 a step moves τ by one per cent at most; at the rate of the weights τ would not move.
RATE = 100.0


class Temperature(nn.Module):
    """τ = exp(−s); s is the parameter, so that a step is a share of τ; s is put back between −log 1 and −log 0.01."""

    def __init__(self, temperature: float) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.tensor(-math.log(temperature)))

    def forward(self) -> Tensor:
        with torch.no_grad():  # as CLIP does, and unlike a clamp in the graph, which would hold s outside for ever
            self.log_scale.clamp_(-math.log(HIGHEST), -math.log(LOWEST))
        return (-self.log_scale).exp()


def check_learned(temperature: float, learned: bool) -> None:
    """For ``Settings.rules``: a learned temperature must start inside its bounds."""
    if learned and not LOWEST <= temperature <= HIGHEST:
        raise InputError(
            f"A learned temperature lies between {LOWEST} and {HIGHEST:g}; {temperature} was given to start from."
        )


def temperature_tower(temperature: float, learned: bool) -> dict[str, Tower]:
    """For ``towers``: the temperature where it is learned, nothing where it is not."""
    return {"temperature": Trained(Temperature(temperature), multiple=RATE)} if learned else {}


def temperature_of(method: Method[Any]) -> float | Tensor:
    """For ``loss``: the learned temperature, or the setting."""
    return method.tower["temperature"]() if "temperature" in method.tower else float(method.settings.temperature)
