"""MoCo (He, Fan, Wu, Xie, Girshick 2020) on text: a sentence finds its key among a queue of keys."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.settings import (
    ClosedShare,
    Count,
    DropoutSetting,
    Settings,
    TemperatureSetting,
    at_least,
)
from isotrope.objectives import queue_nce
from isotrope.towers.heads import projection_head
from isotrope.towers.keeping import Frozen, Momentum, Tower, Trained
from isotrope.towers.key_queue import KeyQueue
from isotrope.views.edits import Edit
from isotrope.views.two_views import edited, parse_two_views

LONGEST, SHORTEST = 65_536, 1024  # of a queue whose length is not given; the first is the paper's


@dataclass(frozen=True)
class QueueSettings(Settings):
    """A default queue has the paper's 65,536 keys, but no more than an eighth of the records (and then at least 1,024),
    and never more than there are records."""

    queue: Annotated[
        int | None,
        at_least(1),
        "Keys that are kept as candidates; none: an eighth of the records, from 1,024 to 65,536",
    ] = None
    momentum: Annotated[ClosedShare, "Share m of itself that the key encoder keeps at each step"] = 0.999
    temperature: TemperatureSetting = 0.07
    projection: Annotated[Count, "Width of the vectors that are compared"] = 128
    head_layers: Annotated[int, at_least(0), "Linear maps of the train-only head; 0: no head"] = 1
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
        if settings.dropout is not None:
            set_dropout(encoder.backbone, settings.dropout)
        head = projection_head(encoder.dimension, settings.projection, settings.head_layers).to(encoder.device)
        width = settings.projection if settings.head_layers else encoder.dimension
        return {
            "head": Trained(head),
            "key": Momentum(encoder, settings.momentum),
            "key_head": Momentum(head, settings.momentum),
            "queue": KeyQueue(settings.queue or LONGEST, width),
        }

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (queries,) = self.encoder.embed(batch["first"])
        with torch.no_grad():
            (keys,) = cast(Encoder, cast(Frozen, self.tower["key"]).module).embed(batch["second"])
        return {"queries": self.tower["head"](queries), "keys": self.tower["key_head"](keys)}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        queries, keys, queue = representations["queries"], representations["keys"], self.tower["queue"]()
        return {"contrastive": queue_nce(queries, keys, queue, self.settings.temperature)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return 1 + len(self.tower["queue"]())


@dataclass(frozen=True)
class MoCoSettings(QueueSettings):
    """MoCo v2 has ``head_layers`` 2 and ``temperature`` 0.2."""

    edits: Annotated[
        str, 'Edits of the query\'s view; a comma is "then", a slash "or", none leaves the text as it is'
    ] = "delete:0.1,crop:0.9"
    second_edits: Annotated[str, "Edits of the key's view; same: those of the query's, drawn again"] = "same"

    def rules(self) -> None:
        parse_two_views(self.edits, self.second_edits)


class MoCo(QueueContrast[MoCoSettings]):
    """ℓ_i = −log exp(cos(q_i, k_i)/τ) / [exp(cos(q_i, k_i)/τ) + Σ_{u∈queue} exp(cos(q_i, u)/τ)]

    q is the query's view through the encoder, k the key's view through a copy that follows it slowly,
    θ_k ← m·θ_k + (1 − m)·θ_q; both go through a head that is dropped after training. When to use it: plain sentences
    and batches that are too small to bring enough negatives. What goes wrong: in a long queue on a small text the keys
    are old, and the sentence itself may be among them; until the queue has filled with keys, noise is the negative.
    Siblings: ``simclr`` and ``simcse`` take their negatives from the batch, ``cert`` brings paraphrases.
    """

    card = Card(
        name="moco",
        title="MoCo on edited text",
        paper="He, Fan, Wu, Xie, Girshick. Momentum Contrast for Unsupervised Visual Representation Learning. "
        "CVPR 2020",
        year=2020,
        needs="sentences",
        family="contrastive",
        read_out="mean",
    )
    Settings = MoCoSettings

    @cached_property
    def edits(self) -> tuple[Edit, Edit]:
        return parse_two_views(self.settings.edits, self.settings.second_edits)(self.encoder.text_tokenizer)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        sequences = records.tokens()
        first, second = (self.frame(edited(sequences, edit, rng)) for edit in self.edits)
        return {"first": first, "second": second}
