"""CoSENT (Su 2022): of any two pairs of texts, the one with the higher score must have the higher cosine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.objectives import cosent
from isotrope.towers.keeping import Tower
from isotrope.views.numbers import Numbers

SCORED, LABELLED = "scored-pairs", "labelled-pairs"


@dataclass(frozen=True)
class CoSENTSettings(Settings):
    scale: float = 20.0  # what the cosines are multiplied by: 1/τ
    order: str = "contradiction,neutral,entailment"  # of the labels of labelled pairs, from the least alike to the most


class CoSENT(Method):
    """L = log(1 + Σ_{y_i < y_j} exp(scale · (cos(u_i, v_i) − cos(u_j, v_j)))); i and j are pairs of texts, y their
    scores.

    Only the order of the scores counts, so their range does not matter. Pairs of equal score are not compared.
    """

    card = Card(
        name="cosent",
        title="CoSENT",
        paper="Su. CoSENT: A more efficient sentence vector scheme than Sentence-BERT. 2022 (blog post)",
        year=2022,
        needs=SCORED,
        accepts=(LABELLED,),
        family="supervised",
    )
    Settings = CoSENTSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if not settings.scale > 0:
            raise InputError(f"scale must be above 0; {settings.scale} was given.")
        names = _ordered(settings.order)
        if len(names) < 2 or len(set(names)) < len(names):
            raise InputError(f"order is at least two different labels, joined by commas; '{settings.order}' was given.")

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.corpus is None:
            raise InputError("CoSENT needs its data at the start: their scores decide what can be compared.")
        if self.corpus.record_type.name == LABELLED:
            order = _ordered(self.settings.order)
            strange = next((name for name in self.corpus.classes if name not in order), None)
            if strange is not None:
                raise InputError(
                    f"The label '{strange}' has no place in the order ({', '.join(order)}); name all labels there, the least alike first."
                )
            self.rank_of = np.array([order.index(name) for name in self.corpus.classes])
        if len(self.corpus.names) < 2:
            raise InputError(
                f"Every pair has the same {self.corpus.record_type.value}, {self.corpus.names[0]}; there is nothing to put in order."
            )
        return {}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        first, second = (self.frame(records.tokens(field)) for field in records.fields)
        scores = records.scores() if records.corpus.record_type.value == "score" else self.rank_of[records.labels()]
        return {"first": first, "second": second, "scores": Numbers.of(scores)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        first, second = self.encoder.embed(batch["first"], batch["second"])
        return {"first": first, "second": second, "scores": batch["scores"].values}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        cosines = cosine_similarity(representations["first"], representations["second"])
        return {"ranking": cosent(cosines, representations["scores"], self.settings.scale)}


def _ordered(order: str) -> list[str]:
    return [name.strip() for name in order.split(",") if name.strip()]
