"""MoCo (He, Fan, Wu, Xie, Girshick 2020) on text:

a sentence looks up its key in a queue of keys from a slowly moving encoder.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.methods.simclr import check_head
from isotrope.objectives import queue_nce
from isotrope.objectives.vectors import unit
from isotrope.towers.heads import projection_head
from isotrope.towers.keeping import Frozen, Momentum, Tower, Trained
from isotrope.views.two_views import edited, parse_two_views

LONGEST, SHORTEST = 65_536, 1024  # of a queue whose length is not given; the first is the paper's


@dataclass(frozen=True)
class QueueSettings(Settings):
    """``queue`` None:

    the paper's 65,536, but no more than an eighth of the records, or than all of them where they are below 8,192.
    """

    queue: int | None = None
    momentum: float = 0.999  # m: how much of itself the key encoder keeps at each step
    temperature: float = 0.07
    projection: int = 128  # width of the vectors that are compared
    head_layers: int = 1  # linear maps of the head that training alone sees; 0: no head
    dropout: float | None = None  # of the query encoder; none: the model's own


class QueueMethod(Method):
    """Queries and keys of two views, and the queue; which views, a subclass says:

    "first" is the query's, "second" the key's.
    """

    queue: Tensor  # [K, d], unit rows
    place: Tensor  # where the next key goes

    @classmethod
    def check(cls, settings: Any) -> None:
        check_head(settings)
        if settings.queue is not None and settings.queue < 1:
            raise InputError(f"queue counts the keys that are kept and must be at least 1; {settings.queue} was given.")
        if not 0 <= settings.momentum <= 1:
            raise InputError(f"momentum must lie between 0 and 1; {settings.momentum} was given.")

    @classmethod
    def check_batch(cls, settings: Any, batch_size: int, corpus: Corpus | None = None) -> None:
        length = _length(settings, corpus)
        if batch_size >= length:
            raise InputError(
                f"queue ({length:,}) must be larger than batch_size ({batch_size:,}); raise the one or lower the other."
            )

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        settings = self.settings
        if settings.dropout is not None:
            set_dropout(encoder.backbone, settings.dropout)
        head = projection_head(encoder.dimension, settings.projection, settings.head_layers).to(encoder.device)
        # As in the released code the queue begins as noise, which real keys replace: no step is without candidates.
        noise = torch.randn(
            _length(settings, self.corpus), settings.projection if settings.head_layers else encoder.dimension
        )
        self.register_buffer("queue", unit(noise))
        self.register_buffer("place", torch.zeros((), dtype=torch.int64))
        return {
            "head": Trained(head),
            "key": Momentum(encoder, settings.momentum),
            "key_head": Momentum(head, settings.momentum),
        }

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (queries,) = self.encoder.embed(batch["first"])
        with torch.no_grad():
            (keys,) = cast(Encoder, cast(Frozen, self.tower["key"]).module).embed(batch["second"])
        return {"queries": self.tower["head"](queries), "keys": self.tower["key_head"](keys)}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        queries, keys = representations["queries"], representations["keys"]
        return {"contrastive": queue_nce(queries, keys, self.queue, self.settings.temperature)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return 1 + len(self.queue)

    def after_step(self, representations: dict[str, Tensor]) -> None:
        """The oldest keys make room for this batch's. No number leaves the device."""
        keys = unit(representations["keys"])
        places = (self.place + torch.arange(len(keys), device=keys.device)) % len(self.queue)
        self.queue[places] = keys
        self.place.add_(len(keys)).remainder_(len(self.queue))


def _length(settings: QueueSettings, corpus: Corpus | None) -> int:
    if settings.queue is not None:
        return settings.queue
    records = 8 * LONGEST if corpus is None else len(corpus)
    return min(LONGEST, max(records // 8, SHORTEST), records)


@dataclass(frozen=True)
class MoCoSettings(QueueSettings):
    """MoCo v2 is ``--head-layers 2 --temperature 0.2``."""

    edits: str = (
        "delete:0.1,crop:0.9"  # of the query's view; a comma is "then", a slash "or", none leaves the text as it is
    )
    second_edits: str = "same"  # of the key's view; same: as the first one, drawn anew


class MoCo(QueueMethod):
    """ℓ_i = −log exp(cos(q_i, k_i)/τ) / [exp(cos(q_i, k_i)/τ) + Σ_{u∈queue} exp(cos(q_i, u)/τ)];  θ_k ← m·θ_k + (1 −
    m)·θ_q.
    """

    card = Card(
        name="moco",
        title="MoCo on edited text",
        paper="He, Fan, Wu, Xie, Girshick. Momentum Contrast for Unsupervised Visual Representation Learning. CVPR 2020",
        year=2020,
        needs="sentences",
        family="contrastive",
    )
    Settings = MoCoSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        parse_two_views(settings.edits, settings.second_edits)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        self.edits = parse_two_views(self.settings.edits, self.settings.second_edits)(encoder.text_tokenizer)
        return super().towers(encoder)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        sequences = records.tokens()
        first, second = (self.frame(edited(sequences, edit, rng)) for edit in self.edits)
        return {"first": first, "second": second}
