"""QuickThoughts (Logeswaran, Lee 2018):

of all sentences of a batch, a sentence must pick those that stand next to it in the text.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.objectives import neighbour_prediction
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers

SECONDS = ("own", "shared")


@dataclass(frozen=True)
class QuickThoughtsSettings(Settings):
    window: int = 1  # sentences on each side that are neighbours
    temperature: float = 1.0  # of raw dot products; the paper has none
    second: str = "own"  # encoder of the neighbours: own (a copy that is trained apart, as in the paper) or shared


class QuickThoughts(Method):
    """ℓ_i = −mean over neighbours j of log exp(f(s_i)·g(s_j)) / Σ_{k≠i} exp(f(s_i)·g(s_k)).

    Neighbours stand within the window in one document; a sentence without one in the batch is a candidate only. The
    first encoder f is kept. The paper tests [f/‖f‖; g/‖g‖], which no folder with one encoder can hold; with "shared" it
    is f twice.
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
    batches = "consecutive"
    Settings = QuickThoughtsSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if not settings.temperature > 0:
            raise InputError(f"temperature must be above 0; {settings.temperature} was given.")
        if settings.window < 1:
            raise InputError(
                f"window counts the neighbours on each side and must be at least 1; {settings.window} was given."
            )
        if settings.second not in SECONDS:
            raise InputError(f"second is one of {', '.join(SECONDS)}; '{settings.second}' was given.")

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        return {"second": Trained(copy.deepcopy(encoder))} if self.settings.second == "own" else {}

    def remarks(self) -> list[str]:
        sizes = np.empty(0) if self.corpus is None else np.diff(self.corpus.starts, append=len(self.corpus))
        alone = int((sizes == 1).sum())
        if not alone:
            return []
        return [
            f"{alone:,} of {len(sizes):,} documents are a single sentence: it has no neighbour and serves as a candidate only."
        ]

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        # Documents are moved apart, so that one number a sentence tells its neighbours, also where others are held out
        # between them.
        places = records.positions() + (self.settings.window + 1) * records.documents()
        return {"sentences": self.frame(records.tokens()), "places": Numbers.of(places)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (first,) = self.encoder.embed(batch["sentences"])
        second = self._second.embed(batch["sentences"])[0] if "second" in self.tower else first
        return {"first": first, "second": second, "places": batch["places"].values}

    @property
    def _second(self) -> Encoder:
        return cast(Encoder, cast(Trained, self.tower["second"]).module)

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        first, second, places = (representations[name] for name in ("first", "second", "places"))
        return {
            "contrastive": neighbour_prediction(
                first, second, self.settings.window, self.settings.temperature, places=places
            )
        }

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["second"]) - 1
