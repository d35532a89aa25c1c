"""A queue of keys (He et al. 2020): candidates of earlier batches, the oldest of which make room for the newest."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from isotrope.towers.keeping import Tower


class KeyQueue(Tower):
    """``keys`` [K, d], unit rows. They begin as noise, as in MoCo's released code, so that no step is without candidates.

    After each update the representations called "keys" take the place of the oldest. No number leaves the device.
    """

    keys: Tensor
    place: Tensor  # where the next key goes

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.register_buffer("keys", normalize(torch.randn(length, width), dim=-1))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    def forward(self) -> Tensor:
        return self.keys

    @torch.no_grad()
    def after_update(self, representations: dict[str, Tensor]) -> None:
        keys = normalize(representations["keys"].float(), dim=-1)
        places = (self.place + torch.arange(len(keys), device=keys.device)) % len(self.keys)
        self.keys[places] = keys
        self.place.add_(len(keys)).remainder_(len(self.keys))
