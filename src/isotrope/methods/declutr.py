"""DeCLUTR (Giorgi, Nitski, Wang, Bader 2021): spans that stand close together in a document are positives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.objectives import nt_xent
from isotrope.towers.keeping import Tower
from isotrope.views.spans import SpanSettings, count_short, sample_anchors, sample_positives


@dataclass(frozen=True)
class DeCLUTRSettings(Settings):
    """Where the encoder takes 512 tokens, spans have the paper's 32 to 510; elsewhere both bounds shrink alike."""

    temperature: float = 0.05
    anchors: int = 2  # a document
    positives: int = 2  # an anchor; the mean of their vectors is compared
    shortest: int | None = None  # tokens of a span; none: a sixteenth of longest
    longest: int | None = None  # tokens of a span; none: what fits into max_length, and never more than that
    place: str = "any"  # of a positive: any (beside, across or inside its anchor), adjacent (beside), subsumed (inside)

    def spans(self, room: int) -> SpanSettings:
        """Spans for an encoder with room for so many tokens."""
        longest = room if self.longest is None else min(self.longest, room)
        shortest = max(round(longest / 16), 1) if self.shortest is None else self.shortest
        return SpanSettings(self.anchors, self.positives, shortest, longest, place=self.place)


class DeCLUTR(Method):
    """L = NT-Xent of the anchors a and the means p of their positives: 2AN vectors of N documents, each an anchor of
    the loss.

        ℓ_i = −log exp(cos(a_i, p_i)/τ) / Σ_{k≠i} exp(cos(a_i, z_k)/τ)

    z are all a and p, those of the same document as hard negatives.

    The paper adds masked language modelling of the anchors at equal weight: ``mlm_weight`` 1, as the recipe has it.
    """

    card = Card(
        name="declutr",
        title="DeCLUTR",
        paper="Giorgi, Nitski, Wang, Bader. DeCLUTR: Deep Contrastive Learning for Unsupervised Textual Representations. ACL 2021",
        year=2021,
        needs="documents",
        family="contrastive",
    )
    batches = "by-document"
    shared_views = ("anchors",)
    Settings = DeCLUTRSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if not settings.temperature > 0:
            raise InputError(f"temperature must be above 0; {settings.temperature} was given.")
        for name in ("shortest", "longest"):
            if getattr(settings, name) is not None and getattr(settings, name) < 1:
                raise InputError(f"{name} must be at least 1; {getattr(settings, name)} was given.")
        settings.spans(settings.longest or settings.shortest or 1)

    @classmethod
    def usable(cls, settings: Any, corpus: Corpus, rows: Rows) -> Rows:
        return rows[corpus.document_tokens()[corpus.documents[rows]] >= 2 * settings.anchors]

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        frame = len(encoder.text_tokenizer.prefix) + len(encoder.text_tokenizer.suffix)
        self.room = min(self.max_length or encoder.max_length, encoder.max_length) - frame
        if self.room < 1:
            raise InputError(
                f"max_length {self.max_length} leaves no room for a span beside {frame} special tokens; raise it."
            )
        if self.settings.shortest is not None and self.settings.shortest > self.room:
            raise InputError(
                f"shortest is {self.settings.shortest}, and {self.room} tokens fit; lower it or raise max_length."
            )
        self.spans = self.settings.spans(self.room)
        return {}

    def remarks(self) -> list[str]:
        found = []
        if self.settings.longest is not None and self.settings.longest > self.room:
            found.append(
                f"longest is {self.settings.longest}, and {self.room} tokens fit: spans have at most {self.room}."
            )
        tokens = np.empty(0) if self.corpus is None else self.corpus.document_tokens()
        useless = int((tokens < 2 * self.settings.anchors).sum())
        short = count_short(tokens, self.spans) - useless
        if short:
            found.append(
                f"{short:,} of {len(tokens):,} documents have fewer than {self.spans.whole} tokens: their spans are shorter."
            )
        if useless:
            found.append(
                f"{useless:,} of {len(tokens):,} documents have fewer than two tokens an anchor and are left out."
            )
        return found

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        anchors, positives = [], []
        for document in records.joined():
            for anchor in sample_anchors(len(document), self.spans, rng):
                anchors.append(document[slice(*anchor)])
                positives += [
                    document[slice(*span)] for span in sample_positives(len(document), anchor, self.spans, rng)
                ]
        return {"anchors": self.frame(anchors), "positives": self.frame(positives)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        anchors, positives = self.encoder.embed(batch["anchors"], batch["positives"])
        shape = (batch.size, self.spans.anchors)
        return {
            "anchors": anchors.unflatten(0, shape),
            "positives": positives.unflatten(0, (*shape, self.spans.positives)).mean(dim=2),
        }

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        anchors, positives = (representations[name].flatten(0, 1) for name in ("anchors", "positives"))
        return {"contrastive": nt_xent(anchors, positives, self.settings.temperature)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return 2 * representations["anchors"].shape[:2].numel() - 1
