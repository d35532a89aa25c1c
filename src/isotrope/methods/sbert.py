"""Sentence-BERT (Reimers, Gurevych 2019):

two or three texts through one encoder, and the loss that their labels, scores or order allow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cosine_similarity, cross_entropy, mse_loss

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.label_targets import Classes
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.objectives import triplet
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers

FORMS = {"classification": "labelled-pairs", "regression": "scored-pairs", "triplet": "triples"}
DISTANCES = ("euclidean", "cosine")


@dataclass(frozen=True)
class SBERTSettings(Settings):
    form: str = "auto"  # classification, regression or triplet; auto: what the columns of the data allow, in this order
    highest_score: float | None = None  # regression: the score that means a cosine of 1; none: the highest in the data
    margin: float = 1.0  # triplet: how much farther the negative must be
    distance: str = "euclidean"  # triplet: euclidean or cosine


class SBERT(Method):
    """One encoder, mean pooling, and one of three losses; u, v, … are the vectors of a record's texts:

    classification   CE(softmax(W·[u; v; |u − v|]), label)
    regression       (cos(u, v) − score / highest score)²
    triplet          max(0, ‖a − p‖ − ‖a − n‖ + margin)
    """

    card = Card(
        name="sbert",
        title="Sentence-BERT",
        paper="Reimers, Gurevych. Sentence-BERT: Sentence Embeddings using Siamese BERT-Networks. EMNLP 2019",
        year=2019,
        needs="labelled-pairs",
        accepts=("scored-pairs", "triples"),
        family="supervised",
    )
    Settings = SBERTSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if settings.form not in ("auto", *FORMS):
            raise InputError(f"form is one of auto, {', '.join(FORMS)}; '{settings.form}' was given.")
        if settings.highest_score is not None and not settings.highest_score > 0:
            raise InputError(f"highest_score must be above 0; {settings.highest_score} was given.")
        if not settings.margin >= 0:
            raise InputError(f"margin must not be negative; {settings.margin} was given.")
        if settings.distance not in DISTANCES:
            raise InputError(f"distance is one of {', '.join(DISTANCES)}; '{settings.distance}' was given.")
        if settings.distance == "cosine" and settings.margin >= 2:
            raise InputError(
                f"A cosine distance is at most 2, so its margin must be below 2; {settings.margin} was given."
            )

    @classmethod
    def record_types(cls, settings: Any) -> tuple[str, ...]:
        return super().record_types(settings) if settings.form == "auto" else (FORMS[settings.form],)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.corpus is None:
            raise InputError("Sentence-BERT needs its data at the start: they decide the form of the loss.")
        self.form = next(form for form, kind in FORMS.items() if kind == self.corpus.record_type.name)
        if self.form == "regression":
            self.highest = self._highest(self.corpus)
        if self.form != "classification":
            return {}
        return {"classifier": Trained(nn.Linear(3 * encoder.dimension, len(Classes.of(self.corpus).names), bias=False))}

    def _highest(self, corpus: Corpus) -> float:
        scores = [float(name) for name in corpus.names]
        highest = float(self.settings.highest_score or max(scores))
        if not highest > 0 or max(scores) > highest or min(scores) < -highest:
            raise InputError(
                f"The scores run from {min(scores):g} to {max(scores):g}; divided by {highest:g} they are no cosines. "
                "Give a highest_score that none exceeds, or shift the scores."
            )
        return highest

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        texts = [self.frame(records.tokens(field)) for field in records.fields]
        views: dict[str, View] = dict(zip(("first", "second", "third"), texts, strict=False))
        if self.form == "classification":
            views["wanted"] = Numbers.of(records.labels())
        elif self.form == "regression":
            views["wanted"] = Numbers.of(records.scores() / self.highest)
        return views

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        names = [name for name in ("first", "second", "third") if name in batch]
        found = dict(zip(names, self.encoder.embed(*(batch[name] for name in names)), strict=True))
        return {**found, "wanted": batch["wanted"].values} if "wanted" in batch else found

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        u, v = representations["first"], representations["second"]
        if self.form == "triplet":
            return {"triplet": triplet(u, v, representations["third"], self.settings.margin, self.settings.distance)}
        if self.form == "regression":
            return {"regression": mse_loss(cosine_similarity(u, v), representations["wanted"])}
        features = torch.cat([u, v, (u - v).abs()], dim=1)
        return {"classification": cross_entropy(self.tower["classifier"](features), representations["wanted"])}
