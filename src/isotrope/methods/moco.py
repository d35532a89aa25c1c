"""MoCo (He, Fan, Wu, Xie, Girshick 2020) on images and text: a record finds its key among many, kept in three ways."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, cast

import numpy as np
import torch
from torch import Tensor

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import evaluating
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Prepared
from isotrope.methods.frame.pair_loss import OneWay, Pairs, Pooled
from isotrope.methods.frame.queue_contrast import QueueContrast, QueueSettings
from isotrope.methods.frame.record_views import AugmentationSetting, bound_edits, plain_view, record_views
from isotrope.methods.frame.settings import ClosedShare, OneOf, at_least
from isotrope.towers.keeping import Tower, Trained
from isotrope.towers.memory_bank import MemoryBank
from isotrope.views.augmentations import parse_augmentations
from isotrope.views.edits import Edit
from isotrope.views.numbers import Numbers
from isotrope.views.two_views import parse_two_views

QUEUE, END_TO_END, BANK = "queue", "end-to-end", "memory-bank"
LARGE = 2**28  # bytes of a memory bank that are worth a word
FILLED_AT_ONCE = 1024  # records of a memory bank


@dataclass(frozen=True)
class MoCoSettings(QueueSettings):
    """MoCo v2 has ``head_layers`` 2 and ``temperature`` 0.2."""

    queue: Annotated[
        int | None,
        at_least(1, most=10_000_000),
        "Keys that are kept as candidates, or drawn from the memory bank; none: an eighth of the records, from 1,024 "
        "to 65,536",
    ] = None
    mechanism: Annotated[
        str,
        OneOf(QUEUE, END_TO_END, BANK),
        "Where negatives come from: a queue of a momentum encoder's keys, the batch (gradient reaches the keys too), "
        "or a memory bank with a vector for each record",
    ] = QUEUE
    bank_momentum: Annotated[ClosedShare, "Share of itself that a vector of the memory bank keeps at a visit"] = 0.5
    edits: Annotated[
        str, 'Edits of the query\'s view; a comma is "then", a slash "or", none leaves the text as it is'
    ] = "delete:0.1,crop:0.9"
    second_edits: Annotated[str, "Edits of the key's view; same: those of the query's, drawn again"] = "same"
    augmentations: AugmentationSetting = "moco-v2-small"

    def rules(self) -> None:
        super().rules()
        parse_two_views(self.edits, self.second_edits)
        parse_augmentations(self.augmentations)
        if self.mechanism == END_TO_END and self.queue is not None:
            raise InputError("mechanism end-to-end has no queue: its negatives are the batch. Set batch_size instead.")

    def check_batch(self, batch_size: int) -> None:
        if self.mechanism == QUEUE:
            super().check_batch(batch_size)


class MoCo(QueueContrast[MoCoSettings]):
    """ℓ_i = −log exp(cos(q_i, k_i)/τ) / [exp(cos(q_i, k_i)/τ) + Σ_u exp(cos(q_i, u)/τ)]

    q is the query's view through the encoder and a head that is dropped after training. The paper's figure 2 has three
    mechanisms for the keys:

    queue         k is the key's view through a copy that follows slowly, θ_k ← m·θ_k + (1 − m)·θ_q; u are older keys
    end-to-end    k is the key's view through the same encoder, with gradient; u are the other keys of the batch
    memory-bank   k is the record's stored vector, v ← norm(m'·v + (1 − m')·q); u are those of other records

    When to use it: plain sentences and batches that are too small to bring enough negatives. What goes wrong: in a long
    queue on a small text the keys are old, and the sentence itself may be among them; until the queue has filled,
    negatives are noise. Siblings: ``simclr`` and ``simcse`` take their negatives from the batch, ``cert`` brings
    paraphrases.
    """

    card = Card(
        name="moco",
        title="MoCo on augmented images or edited text",
        paper="He, Fan, Wu, Xie, Girshick. Momentum Contrast for Unsupervised Visual Representation Learning. "
        "CVPR 2020",
        year=2020,
        needs="sentences",
        family="contrastive",
        read_out="mean",
        images="images",
    )
    Settings = MoCoSettings
    # The authors' notebook for CIFAR-10, with the head of MoCo v2
    image_defaults = {
        "batch_size": 512,
        "optimiser": "sgd",
        "learning_rate": 0.06,
        "weight_decay": 5e-4,
        "schedule": "cosine",
        "warmup_ratio": 0.0,
        "max_grad_norm": None,
        "momentum": 0.99,
        "temperature": 0.1,
        "head_layers": 2,
        "epochs": 100,
    }
    bank_is_full = False

    def prepare(self, corpus: Corpus) -> Prepared:
        if self.settings.mechanism == END_TO_END:
            return Prepared()
        prepared = super().prepare(corpus)
        return self._prepare_bank(len(corpus)) if self.settings.mechanism == BANK else prepared

    def _prepare_bank(self, records: int) -> Prepared:
        count = self.settings.queue or 0
        if count > records:
            raise InputError(
                f"queue ({count:,}) is what each step draws from a memory bank of {records:,} records; lower it."
            )
        width = self.settings.projection if self.settings.head_layers else self.encoder.dimension
        size = 4 * records * width
        said = f"The memory bank holds {records:,} vectors: {size / 1e6:,.0f} MB, and as much in each checkpoint."
        return Prepared(remarks=(said,) if size >= LARGE else ())

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.settings.mechanism == QUEUE:
            return super().towers(encoder)
        head, width = self.head(encoder)
        if self.settings.mechanism == END_TO_END:
            return {"head": Trained(head)}
        if self.corpus is None:
            raise InputError("A memory bank needs the data at the start: it has a vector for each record.")
        return {"head": Trained(head), "bank": MemoryBank(len(self.corpus), width, self.settings.bank_momentum)}

    def count(self, rows: Rows) -> None:
        super().count(rows)
        self.trained = np.sort(rows)

    @cached_property
    def trained(self) -> Rows:
        """The rows that have vectors in the bank; held-out ones have none."""
        return np.arange(len(self.corpus or ()))

    @cached_property
    def edits(self) -> tuple[Edit, Edit]:
        return bound_edits(self.encoder, parse_two_views(self.settings.edits, self.settings.second_edits))

    @property
    def bank(self) -> MemoryBank:
        return cast(MemoryBank, self.tower["bank"])

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        first, second = record_views(self, records, self.edits, self.settings.augmentations, rng)
        rows = {"rows": Numbers.of(records.positions())} if self.settings.mechanism == BANK else {}
        return {"first": first, "second": second, **rows}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        if self.settings.mechanism == QUEUE:
            return super().represent(batch)
        if self.settings.mechanism == END_TO_END:
            queries, keys = self.encoder.embed(batch["first"], batch["second"])
            return {"queries": self.tower["head"](queries), "keys": self.tower["head"](keys)}
        if not self.bank_is_full:
            self._fill_bank()
        return {"queries": self.tower["head"](*self.encoder.embed(batch["first"])), "rows": batch["rows"].values}

    def _fill_bank(self) -> None:
        """One pass over the records: each begins with the vector that it has before training.

        A bank that fills as records come by has next to no negatives at first, and they are old: the encoder can leave
        them all behind by giving every text one vector. Noise, as in the original, draws each text to a random vector.
        """
        device = self.bank.vectors.device
        with evaluating(self):
            for start in range(0, len(self.trained), FILLED_AT_ONCE) if not bool(self.bank.seen.any()) else ():
                rows = self.trained[start : start + FILLED_AT_ONCE]
                view: Any = plain_view(self, cast(Corpus, self.corpus), rows).to(device)
                self.bank.fill(torch.from_numpy(rows).to(device), self.tower["head"](*self.encoder.embed(view)))
        self.bank_is_full = True

    def pairs(self, representations: dict[str, Tensor], generator: torch.Generator) -> Pairs:
        if self.settings.mechanism == QUEUE:
            return super().pairs(representations, generator)
        queries = representations["queries"]
        if self.settings.mechanism == END_TO_END:
            return OneWay(queries, representations["keys"])
        rows, drawn = representations["rows"], self.bank.draw(self.settings.queue or 0, generator)
        left_out = (rows.unsqueeze(1) == drawn) | ~self.bank.seen[drawn]
        return Pooled(queries, self.bank.vectors[rows], self.bank.vectors[drawn], left_out)

    def candidates(self, representations: dict[str, Tensor]) -> int:
        if self.settings.mechanism == QUEUE:
            return super().candidates(representations)
        if self.settings.mechanism == END_TO_END:
            return len(representations["keys"])
        return 1 + round((self.settings.queue or 0) * self.bank.filled())
