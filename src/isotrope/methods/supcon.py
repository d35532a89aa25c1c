"""Supervised contrast (Khosla et al. 2020): texts of one class are positives; Gunel et al. (2021) add a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.classifier import Classifier, layer_of
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.classifying import Classifying
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.record_views import AugmentationSetting, bound_edits, record_views
from isotrope.methods.frame.settings import DropoutSetting, OneOf, Settings, TemperatureSetting, at_least
from isotrope.objectives import supervised_contrast
from isotrope.towers.heads import projection_head
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.augmentations import parse_augmentations
from isotrope.views.edits import Edit
from isotrope.views.numbers import Numbers
from isotrope.views.two_views import parse_two_views


@dataclass(frozen=True)
class SupConSettings(Settings):
    """Those of the first paper, SimCLR's edits in place of its crops and colours; the joint form for text has 0.3, no
    head, one view without edits and a weight of 0.1."""

    temperature: TemperatureSetting = 0.1
    form: Annotated[str, OneOf("out", "in"), "Mean over the positives outside the logarithm, or inside it"] = "out"
    projection: Annotated[int, at_least(0, most=65_536), "Width of the vectors that are compared; 0: no head"] = 128
    number_of_views: Annotated[int, at_least(1, most=2), "Views of a text; each has its own edits and dropout"] = 2
    edits: Annotated[str, 'Edits of the first view; a comma is "then", a slash "or", none leaves the text as it is'] = (
        "delete:0.1,crop:0.9"
    )
    second_edits: Annotated[str, "Edits of the second view; same: those of the first, drawn again"] = "same"
    augmentations: AugmentationSetting = "supcon-small"
    cross_entropy_weight: Annotated[
        float,
        at_least(0, most=1),
        "Weight c of the classifier's cross-entropy; the contrast gets 1 − c; 1: a classifier alone, to compare with",
    ] = 0.0
    dropout: DropoutSetting = None

    def rules(self) -> None:
        parse_two_views(self.edits, self.second_edits)
        parse_augmentations(self.augmentations)


class SupCon(Method[SupConSettings], Classifying):
    """L = (1 − c)·contrast + c·CE(softmax(W·h), label);  z = g(h), h the text's vector

    contrast, form out:   ℓ_i = −1/|P_i| Σ_{p∈P_i} log [ exp(cos(z_i, z_p)/τ) / Σ_{a≠i} exp(cos(z_i, z_a)/τ) ]

    Each text has two edited views, and P_i are the views of i's class, without i itself. The head g is dropped after
    training. The classifier W is kept with the model; where c is 0, a logistic regression on the final vectors is,
    which is the second stage of the paper.

    When to use it: texts with a class each, where a classifier or a search by class follows. What goes wrong: a class
    with one text has positives among that text's own views only; what the classes ignore is lost, so similarity within
    a class may get worse. Siblings: ``simclr`` is the case of a class for each text, ``fine-tune`` trains a classifier
    alone, ``ease`` compares texts with entities.
    """

    card = Card(
        name="supcon",
        title="Supervised contrastive learning",
        paper="Khosla, Teterwak, Wang, Sarna, Tian, Isola, Maschinot, Liu, Krishnan. Supervised Contrastive Learning. "
        "NeurIPS 2020",
        year=2020,
        needs="labelled",
        family="contrastive",
        read_out="mean",
        images="labelled-images",
    )
    Settings = SupConSettings
    # The authors' for CIFAR-10, at half their batch and rate
    image_defaults = {
        "batch_size": 512,
        "optimiser": "sgd",
        "learning_rate": 0.25,
        "weight_decay": 1e-4,
        "schedule": "cosine",
        "max_grad_norm": None,
        "epochs": 100,
    }
    batches = "by-class"
    keeps = "last"  # whether halves of a text find each other says nothing about classes
    shared_views = ("first", "second")

    def prepare(self, corpus: Corpus) -> Prepared:
        if len(corpus.classes) < 2:  # a classifier is kept with the model
            raise InputError(f"Every record is labelled '{corpus.classes[0]}'; at least two classes are needed.")
        return Prepared()

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        settings, width = self.settings, encoder.dimension
        if settings.dropout is not None:
            set_dropout(encoder.backbone, settings.dropout)
        towers: dict[str, Tower] = {}
        if settings.projection:
            towers["head"] = Trained(projection_head(width, settings.projection, layers=2))
        if settings.cross_entropy_weight:
            if self.corpus is None:
                raise InputError("The joint form needs its data at the start: the classifier has an output a class.")
            towers["classifier"] = Trained(nn.Linear(width, len(self.corpus.classes)))
        return towers

    @property
    def names(self) -> tuple[str, ...]:
        """The views of a text that are compared."""
        return self.shared_views[: self.settings.number_of_views]

    @cached_property
    def edits(self) -> tuple[Edit, Edit]:
        return bound_edits(self.encoder, parse_two_views(self.settings.edits, self.settings.second_edits))

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        edits = self.edits[: len(self.names)]
        made = dict(zip(self.names, record_views(self, records, edits, self.settings.augmentations, rng), strict=True))
        return {**made, "labels": Numbers.of(records.labels())}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        # All views in one forward: each row draws its own dropout mask, unedited twins too.
        views = self.encoder.embed(*(batch[name] for name in self.names))
        vectors = torch.stack(views, dim=1)  # [records, views, width]
        found = {
            "vectors": self.tower["head"](vectors) if "head" in self.tower else vectors,
            "labels": batch["labels"].values,
        }
        if "classifier" in self.tower:
            found["classes"] = self.tower["classifier"](vectors)
        return found

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        settings, vectors = self.settings, representations["vectors"].flatten(0, 1)
        labels = representations["labels"].repeat_interleave(settings.number_of_views)
        terms = {}
        if settings.cross_entropy_weight < 1:  # of no weight it would only be watched, and taken for a collapse
            terms["contrastive"] = supervised_contrast(vectors, labels, settings.temperature, settings.form)
        if "classes" in representations:
            terms["classification"] = cross_entropy(representations["classes"].flatten(0, 1), labels)
        return terms

    def weights(self) -> dict[str, float]:
        share = self.settings.cross_entropy_weight
        return {"contrastive": 1 - share, "classification": share} if share else {}

    def classifier(self) -> Classifier | None:
        if "classifier" not in self.tower or self.corpus is None:
            return None
        return Classifier((layer_of(self.tower["classifier"].module),), tuple(self.corpus.classes))

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return representations["vectors"].shape[:2].numel() - 1
