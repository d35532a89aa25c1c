"""ESimCSE (Wu, Gao, Zang, Han, Wang, Hu 2022): SimCSE with repeated pieces of words in one view, and a queue."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import torch
from torch import Tensor

from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import ClosedShare, at_least
from isotrope.methods.frame.temperature import temperature_of
from isotrope.methods.simcse import DropoutPair, SimCSESettings
from isotrope.objectives import info_nce
from isotrope.towers.keeping import Momentum, Tower
from isotrope.towers.key_queue import GrowingQueue


@dataclass(frozen=True)
class ESimCSESettings(SimCSESettings):
    """The paper's values for BERT-base and a batch of 64: the queue is 2.5 batches long."""

    second_edits: Annotated[
        str,
        "Edits of the second view; repeat:0.32 repeats up to 32 % of the pieces of words, none leaves dropout alone; "
        'a comma is "then", a slash "or"',
    ] = "repeat:0.32"
    queue: Annotated[
        int,
        at_least(0, most=10_000_000),
        "Vectors of past batches, negatives next to those of the batch; the paper has 2.5 batches; 0: no queue",
    ] = 160
    momentum: Annotated[ClosedShare, "Share γ of itself that the encoder of the queue's vectors keeps at each step"] = (
        0.995
    )


class ESimCSE(DropoutPair[ESimCSESettings]):
    """ℓ_i = −log exp(cos(h_i, h'_i)/τ) / [ Σ_j exp(cos(h_i, h'_j)/τ) + Σ_{m∈queue} exp(cos(h_i, m)/τ) ]

    h is a sentence, h' the same with some pieces of words repeated, so that length does not give the pair away. m are
    earlier sentences through a copy of the encoder that follows slowly, θ_m ← γ·θ_m + (1 − γ)·θ, without dropout.

    When to use it: plain sentences of differing length, and batches that are small. What goes wrong: after a long
    sentence is cut to ``max_length``, both views are equally long again; on a text of few sentences the queue holds the
    sentence itself. Siblings: ``simcse`` has neither edit nor queue, ``moco`` takes all its negatives from the queue.
    """

    card = Card(
        name="esimcse",
        title="ESimCSE, repetition and momentum contrast",
        paper="Wu, Gao, Zang, Han, Wang, Hu. ESimCSE: Enhanced Sample Building Method for Contrastive Learning of "
        "Unsupervised Sentence Embedding. COLING 2022",
        year=2022,
        needs="sentences",
        family="contrastive",
        read_out="cls",
    )
    Settings = ESimCSESettings

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        towers = super().towers(encoder)
        if not self.settings.queue:
            return towers
        follower = Momentum(encoder, self.settings.momentum)
        return {**towers, "key": follower, "queue": GrowingQueue(self.settings.queue, encoder.dimension)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        views = super().represent(batch)
        if not self.settings.queue:
            return views
        with torch.no_grad():  # the head is the online one: no copy of it follows
            (keys,) = self.encoder_of("key").embed(batch["first"])
            return {**views, "keys": self.read(keys)}

    def past(self, representations: dict[str, Tensor]) -> Tensor:
        """What the queue holds: vectors of earlier batches only."""
        return self.tower["queue"]() if self.settings.queue else representations["second"][:0]

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        first, second = representations["first"], representations["second"]
        candidates = torch.cat([second, self.past(representations)])  # behind the positives: negatives of every anchor
        return {"contrastive": info_nce(first, candidates, temperature_of(self))}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["second"]) + len(self.past(representations))
