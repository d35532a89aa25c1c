"""A queue of keys: the candidates of MoCo and its kin, as many as one likes whatever the batch.

    keys [K, d], unit rows; after each optimiser step the oldest make room for the batch's own

Use it with a momentum tower as the source of the keys: keys of an encoder that changes fast go stale. A queue of K
keys and a batch of N holds what the last K / N steps computed.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import normalize

from isotrope.towers.keeping import Tower


class KeyQueue(Tower):
    """Begins as noise, which real keys replace: no step is without candidates. Called, it gives the keys.

    Both buffers travel with checkpoints. ``after_update`` takes ``representations["keys"]``; with gradient accumulation
    that is the last of the batches only.
    """

    keys: Tensor  # [length, width], unit rows
    place: Tensor  # where the next key goes

    def __init__(self, length: int, width: int) -> None:
        super().__init__()
        self.register_buffer("keys", _unit(torch.randn(length, width)))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))

    def __len__(self) -> int:
        return len(self.keys)

    def forward(self) -> Tensor:
        return self.keys

    @torch.no_grad()
    def after_update(self, representations: dict[str, Tensor]) -> None:
        """The oldest keys make room for this batch's. No number leaves the device."""
        keys = _unit(representations["keys"])
        places = (self.place + torch.arange(len(keys), device=keys.device)) % len(self.keys)
        self.keys[places] = keys
        self.place.add_(len(keys)).remainder_(len(self.keys))


class GrowingQueue(KeyQueue):
    """Begins empty and grows to its length: nothing but real keys is ever a candidate, so early steps have fewer.

    Take it where the queue stands beside other candidates, such as those of the batch. It may be shorter than a batch:
    then it holds the last keys of one.
    """

    held: Tensor  # how many keys are there; it travels with checkpoints
    _held: int | None = None  # the same on the host: a step must not wait for the device

    def __init__(self, length: int, width: int) -> None:
        super().__init__(length, width)
        self.keys.zero_()
        self.register_buffer("held", torch.zeros((), dtype=torch.int64))

    def forward(self) -> Tensor:
        return self.keys[: self._count()]

    def _count(self) -> int:
        if self._held is None:
            self._held = int(self.held)
        return self._held

    @torch.no_grad()
    def after_update(self, representations: dict[str, Tensor]) -> None:
        newest = representations["keys"][-len(self.keys) :]
        super().after_update({"keys": newest})
        self._held = min(self._count() + len(newest), len(self.keys))
        self.held.fill_(self._held)

    def after_restore(self) -> None:
        self._held = None

    def _load_from_state_dict(self, *named: Any, **options: Any) -> None:
        super()._load_from_state_dict(*named, **options)
        self.after_restore()


def _unit(vectors: Tensor) -> Tensor:
    """Float32: half precision would not keep a row's length at 1."""
    return normalize(vectors.float(), dim=-1)
