"""A queue of keys as a capability: queries of one view, keys of another through a copy that follows slowly.

    ℓ_i = −log exp(cos(q_i, k_i)/τ) / [exp(cos(q_i, k_i)/τ) + Σ_{u∈queue} exp(cos(q_i, u)/τ)]
    θ_k ← m·θ_k + (1 − m)·θ_q

Both go through a head that is dropped after training. MoCo brings edits as views, CERT paraphrases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar, cast

import torch
from torch import Tensor, nn

from isotrope.data.corpus import Corpus
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.encoders.shared_batch_norm import even_groups, process_count
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.method import Method, Prepared
from isotrope.methods.frame.pair_loss import PairLossSettings, Pairs, Pooled, pair_loss
from isotrope.methods.frame.settings import ClosedShare, DropoutSetting, TemperatureSetting, Width, at_least
from isotrope.towers.heads import projection_head
from isotrope.towers.keeping import Momentum, Tower, Trained
from isotrope.towers.key_queue import KeyQueue
from isotrope.towers.shuffled_keys import ShuffledMomentum, key_vectors, momentum_copy

LONGEST, SHORTEST = 65_536, 1024  # of a queue whose length is not given; the first is MoCo's


@dataclass(frozen=True)
class QueueSettings(PairLossSettings):
    """A default queue has the paper's 65,536 keys, but no more than an eighth of the records (and then at least 1,024),
    and never more than there are records."""

    queue: Annotated[
        int | None,
        at_least(1, most=10_000_000),
        "Keys that are kept as candidates; none: an eighth of the records, from 1,024 to 65,536",
    ] = None
    momentum: Annotated[ClosedShare, "Share m of itself that the key encoder keeps at each step"] = 0.999
    temperature: TemperatureSetting = 0.07
    projection: Annotated[Width, "Width of the vectors that are compared"] = 128
    head_layers: Annotated[int, at_least(0, most=1_000), "Linear maps of the train-only head; 0: no head"] = 1
    norm_groups: Annotated[
        int,
        at_least(1, most=1_024),
        "Batch norm: groups of a batch with statistics of their own, among which keys are shuffled, fewer where the "
        "batch cannot be cut so; 1: one group",
    ] = 8
    dropout: DropoutSetting = None

    def check_batch(self, batch_size: int) -> None:
        if self.queue is not None and batch_size >= self.queue:
            raise InputError(
                f"queue ({self.queue:,}) must be larger than batch_size ({batch_size:,}); "
                "raise the one or lower the other."
            )

    def length(self, records: int) -> int:
        """Keys of the queue on so many records."""
        return min(LONGEST, max(records // 8, SHORTEST), records) if self.queue is None else self.queue


Q = TypeVar("Q", bound=QueueSettings)


class QueueContrast(Method[Q]):
    """Queries of one view, keys of another, and the queue. Subclasses bring "first" (the query's) and "second"."""

    shared_views = ("first", "second")

    def prepare(self, corpus: Corpus) -> Prepared:
        # A default length is known only now; settings that hold it can be checked against the batch size.
        self.settings = replace(self.settings, queue=self.settings.length(len(corpus)))
        return Prepared()

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        settings = self.settings
        head, width = self.head(encoder)
        return {
            "head": Trained(head),
            "key": momentum_copy(encoder, settings.momentum, settings.norm_groups),
            "key_head": Momentum(head, settings.momentum),
            "queue": KeyQueue(settings.queue or LONGEST, width),
        }

    def head(self, encoder: Encoder) -> tuple[nn.Module, int]:
        """The train-only head and the width of what it gives; the encoder's dropout is set on the way."""
        settings = self.settings
        if settings.dropout is not None:
            set_dropout(encoder.backbone, settings.dropout)
        head = projection_head(encoder.dimension, settings.projection, settings.head_layers).to(encoder.device)
        return head, settings.projection if settings.head_layers else encoder.dimension

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (queries,) = self.encoder.embed(batch["first"])
        with torch.no_grad():
            keys = key_vectors(cast(Tower, self.tower["key"]), batch["second"])
        return {"queries": self.tower["head"](queries), "keys": self.tower["key_head"](keys)}

    def pairs(self, representations: dict[str, Tensor], generator: torch.Generator) -> Pairs:
        return Pooled(representations["queries"], representations["keys"], self.tower["queue"]())

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        pairs = self.pairs(representations, generator)
        return pair_loss(self.settings, pairs, self.settings.temperature, generator)

    def remarks(self, representations: dict[str, Tensor]) -> Sequence[str]:
        groups, rows = self.settings.norm_groups, len(representations["queries"]) // process_count()
        shuffled = isinstance(self.tower["key"], ShuffledMomentum) if "key" in self.tower else False
        if not shuffled or groups == 1 or even_groups(groups, rows) > 1:
            return ()
        return (
            f"A batch of {rows:,} cannot be cut into groups of equal size, so a query and its key share the statistics "
            f"of batch norm and can find each other by them; take a batch_size that {groups} divides.",
        )

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return 1 + len(self.tower["queue"]())
