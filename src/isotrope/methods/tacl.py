"""TaCL (Su et al. 2022): a masked token must find its clean self among the tokens of its sentence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.masked_language import MaskedLanguage, MaskingSettings
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import TemperatureSetting, Weight
from isotrope.objectives import token_contrast
from isotrope.tokens.padded import Tokens
from isotrope.towers.keeping import Frozen, Tower
from isotrope.views.masking import Masked


@dataclass(frozen=True)
class TaCLSettings(MaskingSettings):
    """A masked token is an anchor; MLM counts once."""

    temperature: TemperatureSetting = 0.01
    contrast_weight: Annotated[Weight, "Weight of the contrast; masked language modelling counts once"] = 1.0


class TaCL(MaskedLanguage[TaCLSettings]):
    """ℓ_i = −log exp(cos(h̃_i, h_i)/τ) / Σ_j exp(cos(h̃_i, h_j)/τ), the mean over hidden tokens i; L = ℓ + MLM.

    h̃ is the student on the masked sentence, h the frozen teacher (the encoder as it was given) on the clean one, both
    the last layer. Candidates j are the tokens of the same sentence, [CLS] and [SEP] among them, padding not. The
    paper's third term, next-sentence prediction, is left out: records are sentences.

    When to use it: to spread out the tokens of a sentence, where tokens and not sentences are compared afterwards.
    What goes wrong: a teacher initialised from scratch teaches noise; token vectors that are spread do not make
    sentence vectors so. Siblings: ``mlm`` is the second term, ``infoword`` contrasts n-grams with whole sentences.
    """

    card = Card(
        name="tacl",
        title="TaCL, token-aware contrast",
        paper="Su et al. TaCL: Improving BERT Pre-training with Token-aware Contrastive Learning. "
        "Findings of NAACL 2022",
        year=2022,
        needs="sentences",
        family="contrastive",
    )
    ragged = ("token_losses", "contrast_losses")
    shared_views = ("clean",)
    parts = ("clean", "masked")
    terms = ("token_contrast", "mlm")
    Settings = TaCLSettings

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        return {**super().towers(encoder), "teacher": Frozen.copy_of(encoder.backbone)}

    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        return {"clean": tokens, "masked": self.masked(tokens, rng)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        clean, view = batch["clean"], batch["masked"]
        student = self.encoder.states(view.tokens)
        teacher = self.tower["teacher"](input_ids=clean.ids, attention_mask=clean.mask).last_hidden_state
        return {
            "token_losses": self.token_losses(student, view),
            "contrast_losses": self.contrast_losses(student, teacher, view),
        }

    def contrast_losses(self, student: Tensor, teacher: Tensor, view: Masked) -> Tensor:
        """Of each hidden token. The contrast stays inside a sentence, so it is taken before sentences are gathered."""
        valid, anchors = view.tokens.mask > 0, view.labels >= 0
        losses = token_contrast(student, teacher, valid, anchors, self.settings.temperature, reduction="none")
        return losses.flatten()[view.asked]

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {"token_contrast": representations["contrast_losses"].mean(), **super().loss(representations, generator)}

    def weights(self) -> dict[str, float]:
        return {"token_contrast": self.settings.contrast_weight}

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Perplexity of the hidden tokens, and the share of them that give their clean self most of the probability."""
        found = (representations["contrast_losses"] < math.log(2)).float().mean()
        perplexity = representations["token_losses"].mean().exp()
        return {"perplexity": perplexity, "found": found, **super().measures(representations)}
