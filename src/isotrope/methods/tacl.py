"""TaCL (Su et al. 2022): a masked token must find its clean self among the tokens of its sentence, as a frozen copy
sees them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch, View
from isotrope.methods.mlm import MaskedLanguageModel, MLMSettings
from isotrope.objectives import token_contrast
from isotrope.tokens.padded import Tokens
from isotrope.towers.keeping import Frozen, Role
from isotrope.views.masking import Masked


@dataclass(frozen=True)
class TaCLSettings(MLMSettings):
    mask_rate: float = 0.15  # probability with which a token is hidden, and so becomes an anchor
    temperature: float = 0.01
    contrast_weight: float = 1.0  # of the contrast beside masked language modelling, which counts once


class TaCL(MaskedLanguageModel):
    """ℓ_i = −log exp(cos(h̃_i, h_i)/τ) / Σ_j exp(cos(h̃_i, h_j)/τ), the mean over hidden tokens i; L = ℓ + MLM.

    h̃ is the student on the masked sentence, h the frozen teacher (the encoder as it was given) on the clean one, both
    the last layer. Candidates j are the tokens of the same sentence, [CLS] and [SEP] among them, padding not. The
    paper's third term, next-sentence prediction, is left out: records are sentences.
    """

    name = "tacl"
    title = "TaCL, token-aware contrast"
    paper = "Su et al. TaCL: Improving BERT Pre-training with Token-aware Contrastive Learning. Findings of NAACL 2022"
    year = 2022
    ragged = ("token_losses", "contrast_losses")
    parts = ("clean", "masked")
    terms = ("token_contrast", "mlm")
    Settings = TaCLSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        if not settings.temperature > 0:
            raise InputError(f"temperature must be above 0; {settings.temperature} was given.")
        if not settings.contrast_weight >= 0:
            raise InputError(f"contrast_weight must not be negative; {settings.contrast_weight} was given.")

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        return {**super().roles(encoder), "teacher": Frozen.copy_of(encoder.backbone)}

    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        return {"clean": tokens, "masked": self.masked(tokens, rng)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        clean, view = batch["clean"], batch["masked"]
        student = self.encoder.states(view.tokens)
        teacher = self.role["teacher"](input_ids=clean.ids, attention_mask=clean.mask).last_hidden_state
        return {
            "token_losses": self.token_losses(student, view),
            "contrast_losses": self.contrast_losses(student, teacher, view),
        }

    def contrast_losses(self, student: Tensor, teacher: Tensor, view: Masked) -> Tensor:
        """Of each hidden token.

        The contrast stays inside a sentence, so it can be taken before sentences are gathered.
        """
        valid, anchors = view.tokens.mask > 0, view.labels >= 0
        losses = token_contrast(student, teacher, valid, anchors, self.settings.temperature, reduction="none")
        return losses.flatten()[view.asked]

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        return {"token_contrast": representations["contrast_losses"].mean(), **super().loss(representations, batch)}

    def weights(self) -> dict[str, float]:
        return {"token_contrast": self.settings.contrast_weight}

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Perplexity of the hidden tokens, and the share of them that give their clean self more than half of the
        probability.
        """
        found = (representations["contrast_losses"] < math.log(2)).float().mean()
        return {
            "perplexity": representations["token_losses"].mean().exp(),
            "found": found,
            **super().measures(representations),
        }
