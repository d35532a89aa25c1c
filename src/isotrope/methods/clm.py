"""Causal language modelling (GPT, Radford et al. 2018): each token is predicted from those before it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isotrope.data.corpus import Records
from isotrope.encoders.causal import make_causal
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.language_head import vocabulary_scores
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.settings import Settings
from isotrope.objectives.vectors import mean
from isotrope.tokens.padded import Lengths, Tokens
from isotrope.towers.keeping import Tower, Trained


class CausalLanguageModel(Method[Settings], OwnTask):
    """L = mean over tokens of −log p(x_t | x_<t), the token that ends a text included, the one that begins it not.

    When to use it: for an encoder that reads from left to right, or one to compare with bidirectional ones. A causal
    model (GPT-2) goes on with its own head; a bidirectional backbone gets a causal mask, which stays in the exported
    encoder. A row is one text, so nothing is seen across texts. What goes wrong: the first token sees no other, so cls
    pooling is refused; an encoder that was trained with a full mask is worse at first. Siblings: ``mlm`` predicts from
    both sides, ``mass`` and ``bart`` predict the next token with a decoder that is dropped.
    """

    card = Card(
        name="clm",
        title="Causal language modelling",
        paper="Radford, Narasimhan, Salimans, Sutskever. Improving Language Understanding by Generative Pre-Training. "
        "2018",
        year=2018,
        needs="sentences",
        family="generative",
    )
    language_head = True
    ragged = ("next_losses",)
    shared_views = ("texts",)
    keeps = "last"

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if encoder.language_model is None:
            raise InputError("Causal language modelling needs a model with a language head.")
        if "cls" in encoder.pooling.modes:
            raise InputError(
                "With a causal mask the first token sees no other, so cls pooling gives one vector to all; "
                "use mean or lasttoken."
            )
        make_causal(encoder)
        self.scores, head = vocabulary_scores(encoder.language_model)
        return {"language_head": Trained(head)}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"texts": self.frame(records.tokens())}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        tokens: Tokens = batch["texts"]
        states = self.encoder.states(tokens)
        given = max(len(self.encoder.text_tokenizer.prefix), 1)  # what begins every text, the prompt too
        found = torch.from_numpy(before_the_last(tokens.lengths, tokens.ids.shape[1], given - 1))
        places = found.to(states.device, non_blocking=True)
        scores = self.scores(states.flatten(0, 1)[places]).float()
        return {"next_losses": cross_entropy(scores, tokens.ids.flatten()[places + 1], reduction="none")}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {"clm": mean(representations["next_losses"])}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"clm_perplexity": representations["next_losses"].mean().exp()}


def before_the_last(lengths: Lengths, width: int, first: int = 0) -> Lengths:
    """Flat positions, from ``first`` on, of all tokens that another follows, in rows padded to ``width``.

    Found on the host.
    """
    places = np.arange(width)
    return np.flatnonzero((places < lengths[:, None] - 1) & (places >= first))
