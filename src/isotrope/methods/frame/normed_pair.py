"""Two dropout views through a head with batch norm, as a capability: the contrast that other terms are added to.

ℓ_i = −log exp(cos(h_i, h'_i)/τ) / Σ_j exp(cos(h_i, h'_j)/τ),   h = BN(W₂ ReLU(BN(W₁ e)))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.settings import DropoutSetting, Settings, TemperatureSetting
from isotrope.tokens.padded import Tokens
from isotrope.towers.heads import normed_head
from isotrope.towers.keeping import Tower, Trained


@dataclass(frozen=True)
class NormedPairSettings(Settings):
    """Of the contrast."""

    temperature: TemperatureSetting = 0.05
    dropout: DropoutSetting = None


N = TypeVar("N", bound=NormedPairSettings)


class NormedPair(Method[N]):
    """A sentence under two dropout masks; the head is dropped after training. Subclasses bring a term over tokens.

    ``read`` takes statistics over the rows it is given: in ``loss`` these are the whole batch; in ``represent`` set
    ``batch_statistics``, or a chunk would have its own.
    """

    shared_views = ("sentences",)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.settings.dropout is not None:
            set_dropout(encoder.backbone, self.settings.dropout)
        return {"head": Trained(normed_head(encoder.dimension, int(encoder.backbone.config.hidden_size)))}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        sequences = records.tokens()
        twice = self.frame([sequence for sequence in sequences for _ in range(2)])
        return {"sentences": self.frame(sequences), **self.hidden(twice, rng)}

    def hidden(self, twice: Tokens, rng: np.random.Generator) -> dict[str, View]:
        """What the term over tokens reads: two rows a record, one behind the other, one for each dropout view."""
        raise NotImplementedError

    def embed_twice(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """The same rows twice in one forward: each row draws its own dropout mask."""
        first, second = self.encoder.embed(batch["sentences"], batch["sentences"])
        return first, second

    def read(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
        """Both views through the head together."""
        found: Tensor = self.tower["head"](torch.cat([first, second]))
        return found[: len(first)], found[len(first) :]

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["second"])


def in_turn(first: Tensor, second: Tensor) -> Tensor:
    """Rows of two views as ``hidden`` has them: both of the first record, both of the next."""
    return torch.stack([first, second], dim=1).flatten(0, 1)
