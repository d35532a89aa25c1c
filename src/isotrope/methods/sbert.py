"""Sentence-BERT (Reimers, Gurevych 2019): one encoder for both texts, and the loss that the data allow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, mse_loss

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.label_targets import Classes
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.second_tower import SECOND, TowerSettings, embed_pairs, second_encoder, with_second
from isotrope.methods.frame.settings import OneOf, Weight, above
from isotrope.objectives import triplet
from isotrope.objectives.triplet import DISTANCES
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers

FORMS = {"classification": "labelled-pairs", "regression": "scored-pairs", "triplet": "triples"}
TEXTS = ("first", "second", "third")


@dataclass(frozen=True)
class SBERTSettings(TowerSettings):
    """One form of the loss, and what that form needs."""

    form: Annotated[
        str, OneOf("auto", *FORMS), "Form of the loss; auto: the first that the columns of the data allow"
    ] = "auto"
    highest_score: Annotated[
        float | None, above(0), "Regression: the score that means a cosine of 1; none: the highest in the data"
    ] = None
    margin: Annotated[Weight, "Triplet: how much farther the negative must be than the positive"] = 1.0
    distance: Annotated[str, OneOf(*DISTANCES), "Triplet: what distances are; dot: −a·b"] = "euclidean"

    def rules(self) -> None:
        if self.distance == "cosine" and self.margin >= 2:
            raise InputError(f"A cosine distance is at most 2, so margin must be below 2; {self.margin} was given.")


class SBERT(Method[SBERTSettings]):
    """One of three losses over the vectors u, v, … of a record's texts, each from the same encoder; where towers are
    separate, u is the first one's and the others are the second one's:

    classification   CE(softmax(W·[u; v; |u − v|]), label)
    regression       (cos(u, v) − score / highest score)²
    triplet          max(0, ‖a − p‖ − ‖a − n‖ + margin)

    When to use it: labelled pairs, scored pairs or triples. What goes wrong: the classifier W, which is dropped, may do
    the work that the vectors should do; scores must become cosines, so the highest one must be known. Siblings:
    ``cosent`` needs only the order of the scores, ``simcse-supervised`` adds the other records of the batch as
    negatives, ``fine-tune`` reads both texts together.
    """

    card = Card(
        name="sbert",
        title="Sentence-BERT",
        paper="Reimers, Gurevych. Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP 2019",
        year=2019,
        needs="labelled-pairs",
        accepts=("scored-pairs", "triples"),
        family="supervised",
        read_out="mean",
    )
    Settings = SBERTSettings

    shared_views = TEXTS

    @classmethod
    def record_types(cls, settings: SBERTSettings) -> tuple[str, ...]:
        return super().record_types(settings) if settings.form == "auto" else (FORMS[settings.form],)

    def prepare(self, corpus: Corpus) -> Prepared:
        self.form = next(form for form, record_type in FORMS.items() if record_type == corpus.record_type.name)
        if self.form == "regression":
            self.highest = self._highest(corpus)
        self.classes = Classes.of(corpus) if self.form == "classification" else None
        return Prepared()

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.corpus is None:
            raise InputError("Sentence-BERT needs its data at the start: they decide the form of the loss.")
        towers: dict[str, Tower] = {}
        if self.classes is not None:
            towers["classifier"] = Trained(nn.Linear(3 * encoder.dimension, len(self.classes.names), bias=False))
        return with_second(self.settings, encoder, towers)

    def further(self) -> dict[str, Encoder]:
        second = second_encoder(self)
        return {} if second is None else {SECOND: second}

    def _highest(self, corpus: Corpus) -> float:
        scores = [float(name) for name in corpus.names]
        highest = float(self.settings.highest_score or max(scores))
        if not highest > 0 or max(scores) > highest or min(scores) < -highest:
            raise InputError(
                f"The scores run from {min(scores):g} to {max(scores):g}; divided by {highest:g} they are not cosines. "
                "Give a highest_score that none exceeds, or shift the scores."
            )
        return highest

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        texts = [self.frame(records.tokens(field)) for field in records.fields]
        views: dict[str, View] = dict(zip(TEXTS, texts, strict=False))
        if self.form == "classification":
            views["wanted"] = Numbers.of(records.labels())
        elif self.form == "regression":
            views["wanted"] = Numbers.of(records.scores() / self.highest)
        return views

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        first, *others = [name for name in TEXTS if name in batch]
        vectors = embed_pairs(self, batch[first], [batch[name] for name in others])
        found = dict(zip((first, *others), vectors, strict=True))
        return {**found, "wanted": batch["wanted"].values} if "wanted" in batch else found

    def nested_vectors(self) -> tuple[str, ...]:
        return () if "classifier" in self.tower else TEXTS

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        u, v = representations["first"], representations["second"]
        if self.form == "triplet":
            return {"triplet": triplet(u, v, representations["third"], self.settings.margin, self.settings.distance)}
        if self.form == "regression":
            return {"regression": mse_loss(cosine_similarity(u, v), representations["wanted"])}
        features = torch.cat([u, v, (u - v).abs()], dim=1)
        return {"classification": cross_entropy(self.tower["classifier"](features), representations["wanted"])}
