"""Supervised contrast (Khosla et al. 2020): all texts of one class are positives of each other; Gunel et al. (2021) add
a classifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.objectives import supervised_contrast
from isotrope.towers.heads import projection_head
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers


@dataclass(frozen=True)
class SupConSettings(Settings):
    temperature: float = 0.1  # 0.3 in the joint form for text
    form: str = "out"  # out: the mean over positives outside the logarithm; in: inside it
    projection: int = 128  # width of the vectors that are compared; 0: no head, the encoder's own vectors
    number_of_views: int = 2  # dropout views of a text; the joint form for text has 1
    cross_entropy_weight: float = (
        0.0  # c of the joint form: (1 − c)·contrast + c·cross-entropy; 0.1 in the paper of that form
    )
    dropout: float | None = None  # of the backbone; none: the model's own


class SupCon(Method):
    """L = (1 − c)·contrast + c·CE(softmax(W·h), label);  P_i: the views of i's class, without i itself; z = g(h), h the
    text's vector

    contrast, form out:   ℓ_i = −1/|P_i| Σ_{p∈P_i} log [ exp(cos(z_i, z_p)/τ) / Σ_{a≠i} exp(cos(z_i, z_a)/τ) ]

    The head g and the classifier W are dropped. A class with one text has positives among that text's own views only.
    """

    card = Card(
        name="supcon",
        title="Supervised contrastive learning",
        paper="Khosla, Teterwak, Wang, Sarna, Tian, Isola, Maschinot, Liu, Krishnan. Supervised Contrastive Learning. NeurIPS 2020",
        year=2020,
        needs="labelled",
        family="supervised",
    )
    batches = "by-class"
    keeps = "last"  # whether halves of a text find each other says nothing about classes
    Settings = SupConSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if not settings.temperature > 0:
            raise InputError(f"temperature must be above 0; {settings.temperature} was given.")
        if settings.form not in ("in", "out"):
            raise InputError(f"form is in or out; '{settings.form}' was given.")
        if settings.projection < 0:
            raise InputError(f"projection must not be negative (0: no head); {settings.projection} was given.")
        if settings.number_of_views not in (1, 2):
            raise InputError(f"number_of_views is 1 or 2; {settings.number_of_views} was given.")
        if not 0 <= settings.cross_entropy_weight < 1:
            raise InputError(
                f"cross_entropy_weight must lie between 0 and 1; {settings.cross_entropy_weight} was given."
            )
        if settings.dropout is not None and not 0 <= settings.dropout < 1:
            raise InputError(f"dropout must lie between 0 and 1; {settings.dropout} was given.")

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        settings, width = self.settings, encoder.dimension
        if settings.dropout is not None:
            set_dropout(encoder.backbone, settings.dropout)
        roles: dict[str, Tower] = {}
        if settings.projection:
            roles["head"] = Trained(projection_head(width, settings.projection, layers=2))
        if settings.cross_entropy_weight:
            roles["classifier"] = Trained(nn.Linear(width, self._classes()))
        return roles

    def _classes(self) -> int:
        if self.corpus is None:
            raise InputError("The joint form needs its data at the start: the classifier has an output for each class.")
        if len(self.corpus.classes) < 2:
            raise InputError(f"Every text is labelled '{self.corpus.classes[0]}'; at least two classes are needed.")
        return len(self.corpus.classes)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"texts": self.frame(records.tokens()), "labels": Numbers.of(records.labels())}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        # The same rows twice in one forward: each row draws its own dropout mask.
        vectors = torch.stack(
            self.encoder.embed(*[batch["texts"]] * self.settings.number_of_views), dim=1
        )  # [records, views, width]
        found = {
            "vectors": self.tower["head"](vectors) if "head" in self.tower else vectors,
            "labels": batch["labels"].values,
        }
        if "classifier" in self.tower:
            found["classes"] = self.tower["classifier"](vectors)
        return found

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        settings = self.settings
        labels = representations["labels"].repeat_interleave(settings.number_of_views)
        terms = {
            "contrastive": supervised_contrast(
                representations["vectors"].flatten(0, 1), labels, settings.temperature, settings.form
            )
        }
        if "classes" in representations:
            terms["classification"] = cross_entropy(representations["classes"].flatten(0, 1), labels)
        return terms

    def weights(self) -> dict[str, float]:
        share = float(self.settings.cross_entropy_weight)
        return {"contrastive": 1 - share, "classification": share} if share else {}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return representations["vectors"].shape[:2].numel() - 1
