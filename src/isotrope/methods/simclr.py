"""SimCLR (Chen, Kornblith, Norouzi, Hinton 2020) on text:

two edits of a sentence must find each other among all views of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.objectives import nt_xent
from isotrope.towers.heads import projection_head
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.two_views import edited, parse_two_views


@dataclass(frozen=True)
class SimCLRSettings(Settings):
    """The paper's head has 2 layers; the released code and SimCLRv2 have 3."""

    edits: str = (
        "delete:0.1,crop:0.9"  # of the first view; a comma is "then", a slash "or", none leaves the text as it is
    )
    second_edits: str = "same"  # of the second view; same: as the first one, drawn anew
    temperature: float = 0.1
    projection: int = 128  # width of the vectors that are compared
    head_layers: int = 2  # linear maps of the head that training alone sees; 0: no head
    dropout: float | None = None  # of the backbone; none: the model's own


class SimCLR(Method):
    """ℓ(i, j) = −log exp(cos(z_i, z_j)/τ) / Σ_{k≠i} exp(cos(z_i, z_k)/τ), z = g(f(x̃)):

    mean over the 2N views; j the other view of i.
    """

    card = Card(
        name="simclr",
        title="SimCLR on edited text",
        paper="Chen, Kornblith, Norouzi, Hinton. A Simple Framework for Contrastive Learning of Visual Representations. ICML 2020",
        year=2020,
        needs="sentences",
        family="contrastive",
    )
    Settings = SimCLRSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        parse_two_views(settings.edits, settings.second_edits)
        check_head(settings)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        settings = self.settings
        if settings.dropout is not None:
            set_dropout(encoder.backbone, settings.dropout)
        self.edits = parse_two_views(settings.edits, settings.second_edits)(encoder.text_tokenizer)
        return {"head": Trained(projection_head(encoder.dimension, settings.projection, settings.head_layers))}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        sequences = records.tokens()
        first, second = (self.frame(edited(sequences, edit, rng)) for edit in self.edits)
        return {"first": first, "second": second}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        first, second = self.encoder.embed(batch["first"], batch["second"])
        projected = self.tower["head"](torch.cat([first, second]))
        return {"first": projected[: len(first)], "second": projected[len(first) :]}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {"contrastive": nt_xent(representations["first"], representations["second"], self.settings.temperature)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return 2 * len(representations["first"]) - 1


def check_head(settings: Any) -> None:
    """Refuse a temperature, a head or a dropout that cannot work."""
    if not settings.temperature > 0:
        raise InputError(f"temperature must be above 0; {settings.temperature} was given.")
    if settings.projection < 1:
        raise InputError(f"projection must be at least 1; {settings.projection} was given.")
    if settings.head_layers < 0:
        raise InputError(f"head_layers must not be negative; {settings.head_layers} was given.")
    if settings.dropout is not None and not 0 <= settings.dropout < 1:
        raise InputError(f"dropout must lie between 0 and 1; {settings.dropout} was given.")
