"""Scores of lexicons, learned into the vector: a method for ISOTROPE_METHODS, used by sentiment.sh alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import mse_loss

from isotrope.data.batches import Rows
from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.methods.distil import Distil, DistilSettings
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import Positive
from isotrope.objectives.vectors import unit
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers

HEAD_RATE = 5e-3


@dataclass(frozen=True)
class WordScoresSettings(DistilSettings):
    """The teacher is the encoder that training starts from."""

    keep: Annotated[Positive, "Weight of 1 − cos with the teacher's vector"] = 3.0


class WordScores(Distil):
    """L = |W v/‖v‖ + b − y|² + keep · (1 − cos(v, v_0))

    y are several standardised scores of a text, written into its label with blanks between them; v_0 is the vector
    before training. W is linear and is dropped afterwards, so any linear classifier finds in the vector what
    it read there. The second term keeps everything else.
    """

    card = Card(
        name="word-scores",
        title="Regression of lexicon scores next to distillation from the start",
        paper="of this project; sentiment lexicons in training: Tian et al. SKEP. ACL 2020",
        year=2026,
        needs="labelled",
        family="supervised",
    )
    Settings = WordScoresSettings
    keeps = "last"

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        assert self.corpus is not None
        self.known = np.array([[float(one) for one in name.split()] for name in self.corpus.names], dtype=np.float32)
        head = Trained(nn.Linear(encoder.dimension, self.known.shape[1]), learning_rate=HEAD_RATE)
        return {**super().towers(encoder), "scores": head}

    def count(self, rows: Rows) -> None:
        super().count(rows)
        assert self.corpus is not None
        found = self.known[self.corpus.numbers("label")[rows]]
        self.known = (self.known - found.mean(axis=0)) / found.std(axis=0)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        scores = self.known[records.corpus.numbers("label")[records.rows]]
        return {**super().views(records, rng), "scores": Numbers.of(scores)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        found = super().represent(batch)
        return {**found, "outputs": self.tower["scores"](unit(found["student"])), "scores": batch["scores"].values}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        kept = {name: self.settings.keep * term for name, term in super().loss(representations, generator).items()}
        return {"scores": mse_loss(representations["outputs"], representations["scores"]), **kept}
