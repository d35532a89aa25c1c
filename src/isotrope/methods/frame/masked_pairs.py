"""A sentence task and masked language modelling from one forward over the same rows:

BERT's and ALBERT's pre-training.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Method
from isotrope.methods.mlm import MaskedLanguageModel
from isotrope.methods.nsp import SentencePairs


class MaskedPairs(Method):
    """L = L_sentences + L_MLM, equal weights: the pairs of the sentence task are masked, then one forward answers both.

    ``Beside`` is the other way: masked language modelling in a forward of its own, while the method reads clean text.
    """

    keeps = "last"

    def __init__(self, task: SentencePairs, language: MaskedLanguageModel) -> None:
        super().__init__(task.settings, task.encoder, task.max_length, task.corpus)
        self.task, self.language = task, language
        self.ragged = (*task.ragged, *language.ragged)
        self.tower = torch.nn.ModuleDict({**task.tower, **language.tower})

    def remarks(self) -> list[str]:
        return self.task.remarks()

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        views = self.task.views(records, rng)
        masked = self.language.masked(views.pop("pairs"), rng)  # type: ignore[arg-type]
        return {"masked": masked, **views}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        states = self.encoder.states(batch["masked"].tokens)
        return {**self.task.told(states, batch), "token_losses": self.language.token_losses(states, batch["masked"])}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {**self.task.loss(representations, generator), **self.language.loss(representations, generator)}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**self.task.on_held_out(representations), **self.language.on_held_out(representations)}
