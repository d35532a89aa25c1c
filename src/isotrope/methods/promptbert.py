"""PromptBERT (Jiang et al. 2022): a sentence in two templates is a positive pair, read off at their [MASK] tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.prompted import PromptedContrast, PromptSettings
from isotrope.methods.frame.settings import OneOf
from isotrope.methods.frame.temperature import temperature_of
from isotrope.objectives import info_nce
from isotrope.tokens.padded import Tokens
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.towers.keeping import Tower

TRAINED, FROZEN, NONE = "trained", "frozen", "none"


@dataclass(frozen=True)
class PromptBERTSettings(PromptSettings):
    """What the paper invented: the second template, and what the template itself says taken off."""

    denoising: Annotated[
        str,
        OneOf(TRAINED, FROZEN, NONE),
        "Subtract the [MASK] of the template alone while training: with its gradient, without it, or not at all",
    ] = TRAINED


class PromptBERT(PromptedContrast[PromptBERTSettings]):
    """ℓ_i = −log exp(cos(z_i, z'_i)/τ) / Σ_j exp(cos(z_i, z'_j)/τ)        z = g(h_[MASK](T(x)) − ĥ_[MASK](T, |x|))

    T and T' are two templates; g = tanh(W· + b) is dropped after training. ĥ is the state of [MASK] in the template
    without a sentence, whose tokens behind the gap keep the positions that |x| tokens leave them: what is left is the
    sentence's share. Inference reads h alone, as published.
    When to use it: plain sentences and a raw masked language model. What goes wrong: templates that say too much leave
    little room for the sentence, and a text without its full stop is read otherwise than one with it. Siblings:
    ``simcse`` has dropout alone between its views; ``sncse`` adds negated sentences.
    """

    card = Card(
        name="promptbert",
        title="PromptBERT, unsupervised",
        paper="Jiang, Jiao, Huang, Zhang, Wang, Zhuang, Wei, Huang, Deng, Zhang. PromptBERT: Improving BERT Sentence "
        "Embeddings with Prompts. EMNLP 2022",
        year=2022,
        needs="sentences",
        family="contrastive",
        read_out="mask",
    )
    Settings = PromptBERTSettings
    plain_template = 'This sentence of "[X]" means [MASK].'
    spaced_template = "The sentence : ' [X] ' means [MASK]."

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self._denoises and not encoder.takes_positions:
            raise InputError(
                f"promptbert reads its template at shifted positions, and a {type(encoder.backbone).__name__} takes "
                "none; set denoising none."
            )
        return super().towers(encoder)

    @property
    def _denoises(self) -> bool:
        return self.prompted and self.settings.denoising != NONE

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        sequences = records.tokens()
        return {"first": self.frame(sequences), "second": self.second_frame(sequences)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        views: tuple[Tokens, Tokens] = batch["first"], batch["second"]
        if not self._denoises:
            first, second = self.encoder.embed(*views)
            return {"first": self.read(first), "second": self.read(second)}
        frames = self.encoder.text_tokenizer, self.second
        alone, rows = zip(*map(bare_rows, frames, views), strict=True)
        if self.settings.denoising == TRAINED:
            first, second, *noise = self.encoder.embed(*views, *alone)
        else:
            first, second = self.encoder.embed(*views)
            with torch.no_grad():
                noise = list(self.encoder.embed(*alone))
        return {
            "first": self.read(first - noise[0][rows[0]]),
            "second": self.read(second - noise[1][rows[1]]),
        }

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {"contrastive": info_nce(representations["first"], representations["second"], temperature_of(self))}


def bare_rows(frame: TextTokenizer, view: Tokens) -> tuple[Tokens, Tensor]:
    """The template without a text, once for each length |x| of the view's texts; and which of these a row needs."""
    found, which = np.unique(view.lengths - len(frame.start) - len(frame.suffix), return_inverse=True)
    device = view.ids.device
    return frame.frame_alone(found).to(device), torch.from_numpy(which).to(device)
