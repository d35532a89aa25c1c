"""Contrastive Tension (Carlsson, Gyllensten, Gogoulou, Hellqvist, Sahlgren 2021): two encoders with one start agree on
a sentence and disagree on any other."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.second_tower import SECOND, embed_pairs
from isotrope.methods.frame.settings import Draws, OneOf, Positive, Settings, at_least
from isotrope.objectives import info_nce, negative_sampling
from isotrope.towers.keeping import Tower, Trained

PAIRS, IN_BATCH = "pairs", "in-batch"


@dataclass(frozen=True)
class TensionSettings(Settings):
    """The paper's: one pair of equal sentences for seven pairs of different ones."""

    form: Annotated[
        str,
        OneOf(PAIRS, IN_BATCH),
        "pairs: binary cross-entropy on dot products, as in the paper; in-batch: a softmax over the cosines with all "
        "sentences of the batch, both ways",
    ] = PAIRS
    negatives: Annotated[Draws, "pairs: other sentences K of the batch that a sentence is paired with"] = 7
    temperature: Annotated[Positive, "in-batch: temperature τ of the cosines; pairs has none"] = 0.05
    dropout: Annotated[
        float | None,
        at_least(0, below=1),
        "Dropout of both backbones while training; none: off in the form pairs, the model's own in-batch",
    ] = None

    def rules(self) -> None:
        if self.form == IN_BATCH and self.dropout == 0:
            raise InputError("form in-batch needs dropout: without it both encoders get the same gradients for ever.")

    def check_batch(self, batch_size: int) -> None:
        """Where every sentence meets all others, both encoders have the same gradients, and stay equal."""
        if self.form == PAIRS and batch_size < self.negatives + 2:
            raise InputError(
                f"batch_size ({batch_size}) must be at least negatives + 2 ({self.negatives + 2}), so that the two "
                "encoders pair a sentence with different ones; raise the one or lower the other."
            )


class ContrastiveTension(Method[TensionSettings]):
    """L = −mean_(a, b) [ y log σ(z) + (1 − y) log σ(−z) ],   z = f₁(a)·f₂(b),   y = 1 where a and b are one sentence

    Each sentence of the batch is paired with itself and with the K that follow it in the batch. f₁ and f₂ begin with
    the same weights and share none afterwards; f₂ is kept.

    When to use it: plain sentences and a raw language model, read out by the mean. What goes wrong: plain dot products
    begin in the tens, so a high learning rate destroys the encoder in a few steps. Siblings: ``simcse`` has one encoder
    and takes its two views from dropout; ``quick-thoughts`` has two encoders for neighbouring sentences.
    """

    card = Card(
        name="contrastive-tension",
        title="Contrastive Tension",
        paper="Carlsson, Gyllensten, Gogoulou, Hellqvist, Sahlgren. Semantic Re-tuning with Contrastive Tension. "
        "ICLR 2021",
        year=2021,
        needs="sentences",
        family="contrastive",
        read_out="mean",
    )
    Settings = TensionSettings
    shared_views = ("sentences",)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        settings = self.settings
        dropout = 0.0 if settings.form == PAIRS and settings.dropout is None else settings.dropout
        if dropout is not None:
            set_dropout(encoder.backbone, dropout)
        return {SECOND: Trained(copy.deepcopy(encoder))}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"sentences": self.frame(records.tokens())}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        kept, other = embed_pairs(self, batch["sentences"], [batch["sentences"]])
        return {"first": other, "second": kept}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        first, second = representations["first"], representations["second"]
        if self.settings.form == IN_BATCH:
            temperature = self.settings.temperature
            return {"contrastive": (info_nce(first, second, temperature) + info_nce(second, first, temperature)) / 2}
        others = torch.stack([second.roll(-shift, dims=0) for shift in range(1, self.settings.negatives + 1)], dim=1)
        return {"tension": negative_sampling(first, second, others) / (1 + self.settings.negatives)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["second"]) if self.settings.form == IN_BATCH else 1 + self.settings.negatives
