"""QuickThoughts (Logeswaran, Lee 2018): a sentence picks its neighbours in the text among a batch."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.settings import Draws, OneOf, Settings, TemperatureSetting
from isotrope.objectives import neighbour_prediction
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers


@dataclass(frozen=True)
class QuickThoughtsSettings(Settings):
    """The paper compares raw dot products, which is a temperature of 1."""

    window: Annotated[Draws, "Sentences on each side that are neighbours"] = 1
    temperature: Annotated[TemperatureSetting, "Temperature: raw dot products are divided by it"] = 1.0
    second: Annotated[
        str, OneOf("own", "shared"), "Encoder of the neighbours: a second one that is trained too, or the same"
    ] = "own"


class QuickThoughts(Method[QuickThoughtsSettings]):
    """ℓ_i = −mean over neighbours j of log exp(f(s_i)·g(s_j)) / Σ_{k≠i} exp(f(s_i)·g(s_k))

    Neighbours stand within the window in one document; a sentence without one in the batch is a candidate only. The
    first encoder f is kept. The paper tests [f/‖f‖; g/‖g‖], which no folder with one encoder can hold; with "shared" it
    is f twice.

    When to use it: running text, or dialogues, whose sentences follow from each other. What goes wrong: neighbours
    share a topic, so the vectors learn topics first; raw dot products can grow by longer vectors alone. Siblings:
    ``skip-thought`` generates the neighbours, ``declutr`` compares spans, ``dialogue-order`` looks at the order too.
    """

    card = Card(
        name="quick-thoughts",
        title="QuickThoughts",
        paper="Logeswaran, Lee. An Efficient Framework for Learning Sentence Representations. ICLR 2018",
        year=2018,
        needs="documents",
        accepts=("dialogues",),
        family="contrastive",
    )
    Settings = QuickThoughtsSettings
    batches = "consecutive"
    shared_views = ("sentences",)

    def prepare(self, corpus: Corpus) -> Prepared:
        sizes = np.diff(corpus.starts, append=len(corpus))
        alone = int((sizes == 1).sum())
        reason = "are a single sentence: it has no neighbour and serves as a candidate only"
        return Prepared(remarks=(f"{alone:,} of {len(sizes):,} documents {reason}.",) if alone else ())

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        return {"second": Trained(copy.deepcopy(encoder))} if self.settings.second == "own" else {}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        # Places leave gaps between documents, so that one number a sentence says who its neighbours are, also where
        # others are held out between them.
        places = records.positions() + (self.settings.window + 1) * records.documents()
        return {"sentences": self.frame(records.tokens()), "places": Numbers.of(places)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (first,) = self.encoder.embed(batch["sentences"])
        second = self.encoder_of("second").embed(batch["sentences"])[0] if "second" in self.tower else first
        return {"first": first, "second": second, "places": batch["places"].values}

    def nested_vectors(self) -> tuple[str, ...]:
        return "first", "second"

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        first, second, places = (representations[name] for name in ("first", "second", "places"))
        window, temperature = self.settings.window, self.settings.temperature
        return {"contrastive": neighbour_prediction(first, second, window, temperature, places=places)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["second"]) - 1
