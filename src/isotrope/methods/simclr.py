"""SimCLR (Chen, Kornblith, Norouzi, Hinton 2020) on images and text: two views of a record find each other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.pair_loss import AllViews, PairLossSettings, pair_loss
from isotrope.methods.frame.record_views import AugmentationSetting, bound_edits, record_views
from isotrope.methods.frame.settings import DropoutSetting, TemperatureSetting, Width, at_least
from isotrope.towers.heads import projection_head
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.augmentations import parse_augmentations
from isotrope.views.edits import Edit
from isotrope.views.two_views import parse_two_views


@dataclass(frozen=True)
class SimCLRSettings(PairLossSettings):
    """The paper's head has 2 layers; the released code and SimCLRv2 have 3, and ``head_norm``."""

    edits: Annotated[str, 'Edits of the first view; a comma is "then", a slash "or", none leaves the text as it is'] = (
        "delete:0.1,crop:0.9"
    )
    second_edits: Annotated[str, "Edits of the second view; same: those of the first, drawn again"] = "same"
    augmentations: AugmentationSetting = "simclr-small"
    temperature: TemperatureSetting = 0.1
    projection: Annotated[Width, "Width of the vectors that are compared"] = 128
    head_layers: Annotated[int, at_least(0, most=1_000), "Linear maps of the train-only head; 0: no head"] = 2
    head_norm: Annotated[bool, "A batch norm behind each map of the head in place of biases, as the released code"] = (
        False
    )
    dropout: DropoutSetting = None

    def rules(self) -> None:
        super().rules()
        parse_two_views(self.edits, self.second_edits)
        parse_augmentations(self.augmentations)


class SimCLR(Method[SimCLRSettings]):
    """ℓ(i, j) = −log exp(cos(z_i, z_j)/τ) / Σ_{k≠i} exp(cos(z_i, z_k)/τ), the mean over the 2N views

    j is the other view of i; z = g(f(x̃)): x̃ an augmented image or an edited text, f the encoder, g a head that is
    dropped after training. When to use it: images, or plain sentences whose meaning survives an edit. What goes wrong:
    strong edits change the meaning, so that the pair is none; a small batch has few negatives. Siblings: ``simcse``
    lets dropout alone make the pair, ``moco`` takes its negatives from a queue, ``vascl`` perturbs vectors instead of
    words.
    """

    card = Card(
        name="simclr",
        title="SimCLR on augmented images or edited text",
        paper="Chen, Kornblith, Norouzi, Hinton. A Simple Framework for Contrastive Learning of Visual "
        "Representations. ICML 2020",
        year=2020,
        needs="sentences",
        family="contrastive",
        read_out="mean",
        images="images",
    )
    Settings = SimCLRSettings
    # The authors' for CIFAR-10: 512 images, rate 1.0 · batch / 256, τ 0.5; the rate rises for 10 epochs
    image_defaults = {
        "batch_size": 512,
        "optimiser": "lars",
        "learning_rate": 2.0,
        "weight_decay": 1e-4,
        "schedule": "cosine",
        "warmup_ratio": 0.1,
        "max_grad_norm": None,
        "temperature": 0.5,
        "epochs": 100,
    }
    shared_views = ("first", "second")

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.settings.dropout is not None:
            set_dropout(encoder.backbone, self.settings.dropout)
        settings = self.settings
        self.batch_statistics = settings.head_norm
        head = projection_head(encoder.dimension, settings.projection, settings.head_layers, settings.head_norm)
        return {"head": Trained(head)}

    @cached_property
    def edits(self) -> tuple[Edit, Edit]:
        return bound_edits(self.encoder, parse_two_views(self.settings.edits, self.settings.second_edits))

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        first, second = record_views(self, records, self.edits, self.settings.augmentations, rng)
        return {"first": first, "second": second}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        first, second = self.encoder.embed(batch["first"], batch["second"])
        projected = self.tower["head"](torch.cat([first, second]))
        return {"first": projected[: len(first)], "second": projected[len(first) :]}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        views = AllViews(representations["first"], representations["second"])
        return pair_loss(self.settings, views, self.settings.temperature, generator)

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return 2 * len(representations["first"]) - 1
