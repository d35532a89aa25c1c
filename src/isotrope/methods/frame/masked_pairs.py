"""A sentence task and masked language modelling in one forward over the same rows: the pre-training of BERT."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.corpus import Records
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.masked_language import MaskedLanguage
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.sentence_pairs import P, SentencePairs
from isotrope.tokens.padded import Tokens
from isotrope.views.masking import Masked


class MaskedPairs(Method[P], OwnTask):
    """L = L_sentences + L_MLM, equal weights: the pairs of the sentence task are masked, then one forward serves both.

    When to use it: pre-training from scratch, where a second forward would double the cost. Sibling: ``Combined`` adds
    masked language modelling in a forward of its own, and the method reads clean text.
    """

    keeps = "last"

    def __init__(self, task: SentencePairs[P], language: MaskedLanguage[Any]) -> None:
        super().__init__(task.settings, task.encoder, task.max_length)
        self.task, self.language = task, language
        self.corpus, self.prepared = task.corpus, task.prepared
        self.card = _joined(task.card, language.card)
        self.ragged = (*task.ragged, *language.ragged)
        self.tower = nn.ModuleDict({**task.tower, **language.tower})

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        views = self.task.views(records, rng)
        pairs = views.pop("pairs")
        assert isinstance(pairs, Tokens)
        return {"masked": self.language.masked(pairs, rng), **views}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        """One forward; its last layer is read at the first token of each row and at masked ones, which are others."""
        view: Masked = batch["masked"]
        rows, width = view.tokens.ids.shape
        firsts = torch.arange(0, rows * width, width, device=view.asked.device)
        states = self.encoder.states_at(view.tokens, torch.cat([firsts, view.asked]))
        first, asked = states.split([rows, len(view.asked)])
        return {**self.task.classified(first, batch), "token_losses": self.language.losses_of(asked, view)}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {**self.task.loss(representations, generator), **self.language.loss(representations, generator)}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**self.task.on_held_out(representations), **self.language.on_held_out(representations)}


def _joined(task: Card, language: Card) -> Card:
    return Card(
        name=f"{task.name}+{language.name}",
        title=f"{task.title} and {language.title[0].lower()}{language.title[1:]}",
        paper=task.paper,
        year=task.year,
        needs=task.needs,
        family=task.family,
    )
