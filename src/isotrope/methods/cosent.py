"""CoSENT (Su 2022): of any two pairs of texts, the one with the higher score must have the higher cosine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from isotrope.data.corpus import Corpus, Records
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.settings import Positive, Settings
from isotrope.objectives import cosent
from isotrope.views.numbers import Numbers

SCORED, LABELLED = "scored-pairs", "labelled-pairs"


@dataclass(frozen=True)
class CoSENTSettings(Settings):
    """The post's scale, and an order for labels."""

    scale: Annotated[Positive, "What cosines are multiplied by: 1/τ"] = 20.0
    order: Annotated[str, "Labels of labelled pairs from the least alike to the most, joined by commas"] = (
        "contradiction,neutral,entailment"
    )

    def rules(self) -> None:
        names = self.labels()
        if len(names) < 2 or len(set(names)) < len(names):
            raise InputError(f"order is at least two different labels, joined by commas; '{self.order}' was given.")

    def labels(self) -> list[str]:
        return [name.strip() for name in self.order.split(",") if name.strip()]


class CoSENT(Method[CoSENTSettings]):
    """L = log(1 + Σ_{y_i < y_j} exp(scale · (cos(u_i, v_i) − cos(u_j, v_j)))); i, j pairs of texts, y their scores

    When to use it: scored pairs whose scale is not that of a cosine, or labels that have an order: only the order of
    the scores counts. What goes wrong: pairs of equal score are not compared, so few different scores teach little, and
    a batch of one score teaches nothing. Siblings: ``sbert`` fits the cosine to the score itself,
    ``simcse-supervised`` takes triples.
    """

    card = Card(
        name="cosent",
        title="CoSENT",
        paper="Su. CoSENT: A more efficient sentence vector scheme than Sentence-BERT. 2022 (blog post)",
        year=2022,
        needs=SCORED,
        accepts=(LABELLED,),
        family="supervised",
        read_out="mean",
    )
    Settings = CoSENTSettings
    advised_for = ("scored-pairs",)

    shared_views = ("first", "second")

    def prepare(self, corpus: Corpus) -> Prepared:
        order, labelled = self.settings.labels(), corpus.record_type.name == LABELLED
        strange = next((name for name in corpus.classes if name not in order), None) if labelled else None
        if strange is not None:
            raise InputError(
                f"The label '{strange}' has no place in the order ({', '.join(order)}); name all labels there, the "
                "least alike first."
            )
        if len(corpus.names) < 2:
            raise InputError(
                f"Every pair has the same {corpus.record_type.value}, {corpus.names[0]}; there is nothing to put in "
                "order."
            )
        return Prepared()

    def _ranks(self, corpus: Corpus) -> npt.NDArray[np.int64]:
        """The place of each class in the order."""
        order = self.settings.labels()
        return np.array([order.index(name) for name in corpus.classes])

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        first, second = (self.frame(records.tokens(field)) for field in records.fields)
        labelled = records.corpus.record_type.name == LABELLED
        scores = self._ranks(records.corpus)[records.labels()] if labelled else records.scores()
        return {"first": first, "second": second, "scores": Numbers.of(scores)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        first, second = self.encoder.embed(batch["first"], batch["second"])
        return {"first": first, "second": second, "scores": batch["scores"].values}

    def nested_vectors(self) -> tuple[str, ...]:
        return "first", "second"

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        cosines = cosine_similarity(representations["first"], representations["second"])
        return {"ranking": cosent(cosines, representations["scores"], self.settings.scale)}
