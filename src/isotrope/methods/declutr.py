"""DeCLUTR (Giorgi, Nitski, Wang, Bader 2021): spans that stand close together in a document are positives."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Corpus, Records
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.settings import Draws, OneOf, Settings, TemperatureSetting, at_least
from isotrope.objectives import nt_xent
from isotrope.views.spans import PLACES, SpanSettings, count_short, sample_anchors, sample_positives


@dataclass(frozen=True)
class DeCLUTRSettings(Settings):
    """Where the encoder takes 512 tokens, spans have the paper's 32 to 510; elsewhere both bounds shrink alike."""

    temperature: TemperatureSetting = 0.05
    anchors: Annotated[Draws, "Anchors drawn from a document"] = 2
    positives: Annotated[Draws, "Positives of an anchor; the mean of their vectors is compared"] = 2
    shortest: Annotated[int | None, at_least(1), "Fewest tokens of a span; none: a sixteenth of longest"] = None
    longest: Annotated[int | None, at_least(1), "Most tokens of a span; none: as many as fit into max_length"] = None
    place: Annotated[
        str, OneOf(*PLACES), "Where a positive lies: anywhere near its anchor, next to it, or inside it"
    ] = "any"

    def rules(self) -> None:
        self.spans(self.longest or self.shortest or 1)

    def spans(self, room: int) -> SpanSettings:
        """Spans for an encoder with room for so many tokens."""
        longest = room if self.longest is None else min(self.longest, room)
        shortest = max(round(longest / 16), 1) if self.shortest is None else self.shortest
        return SpanSettings(self.anchors, self.positives, shortest, longest, place=self.place)


class DeCLUTR(Method[DeCLUTRSettings]):
    """L = NT-Xent + MLM(anchors): the anchors a, the means p of their positives, 2AN vectors of N documents

        ℓ_i = −log exp(cos(a_i, p_i)/τ) / Σ_{k≠i} exp(cos(a_i, z_k)/τ)

    z are all a and p, those of the same document as hard negatives. Masked language modelling of the anchors has equal
    weight: ``mlm_weight`` is 1 unless given, so the start needs a masked-language head.

    When to use it: long documents without labels. What goes wrong: in short documents the spans are short too, and the
    anchors of one document lie close together although they are negatives. Siblings: ``quick-thoughts`` compares whole
    sentences, ``simcse`` needs no documents.
    """

    card = Card(
        name="declutr",
        title="DeCLUTR",
        paper="Giorgi, Nitski, Wang, Bader. DeCLUTR: Deep Contrastive Learning for Unsupervised Textual "
        "Representations. ACL 2021",
        year=2021,
        needs="documents",
        family="contrastive",
        read_out="mean",
    )
    Settings = DeCLUTRSettings
    batches = "by-document"
    shared_views = ("anchors",)
    defaults: ClassVar[dict[str, Any]] = {"mlm_weight": 1.0}

    @cached_property
    def room(self) -> int:
        """Tokens of a row, without the special ones."""
        frame = len(self.encoder.text_tokenizer.prefix) + len(self.encoder.text_tokenizer.suffix)
        room = min(self.max_length or self.encoder.max_length, self.encoder.max_length) - frame
        if room < 1:
            raise InputError(
                f"max_length {self.max_length} leaves no room for a span next to {frame} special tokens; raise it."
            )
        return room

    @cached_property
    def spans(self) -> SpanSettings:
        shortest = self.settings.shortest
        if shortest is not None and shortest > self.room:
            raise InputError(f"shortest is {shortest}, and {self.room} tokens fit; lower it or raise max_length.")
        return self.settings.spans(self.room)

    def prepare(self, corpus: Corpus) -> Prepared:
        tokens, remarks = corpus.document_tokens(), []
        enough = tokens >= 2 * self.settings.anchors
        useless = int((~enough).sum())
        short = count_short(tokens, self.spans) - useless
        if self.settings.longest is not None and self.settings.longest > self.room:
            longest = self.settings.longest
            remarks.append(f"longest is {longest}, and {self.room} tokens fit: spans have at most {self.room}.")
        if short:
            whole = self.spans.whole
            remarks.append(
                f"{short:,} of {len(tokens):,} documents have fewer than {whole} tokens: their spans are shorter."
            )
        if useless:
            remarks.append(
                f"{useless:,} of {len(tokens):,} documents have fewer than two tokens an anchor and are left out."
            )
        return Prepared(enough[corpus.documents], tuple(remarks))

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        anchors, positives = [], []
        for document in records.joined():
            for anchor in sample_anchors(len(document), self.spans, rng):
                anchors.append(document[slice(*anchor)])
                near = sample_positives(len(document), anchor, self.spans, rng)
                positives += [document[slice(*span)] for span in near]
        return {"anchors": self.frame(anchors), "positives": self.frame(positives)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        anchors, positives = self.encoder.embed(batch["anchors"], batch["positives"])
        shape = (batch.size, self.spans.anchors)
        return {
            "anchors": anchors.unflatten(0, shape),
            "positives": positives.unflatten(0, (*shape, self.spans.positives)).mean(dim=2),
        }

    def nested_vectors(self) -> tuple[str, ...]:
        return "anchors", "positives"

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        anchors, positives = (representations[name].flatten(0, 1) for name in ("anchors", "positives"))
        return {"contrastive": nt_xent(anchors, positives, self.settings.temperature)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return 2 * representations["anchors"].shape[:2].numel() - 1
