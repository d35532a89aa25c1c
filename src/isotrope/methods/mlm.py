"""Masked language modelling (Devlin et al. 2019): as a method of its own, and as a term beside any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from torch import Tensor
from torch.nn.functional import cross_entropy

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.language_head import vocabulary_scores
from isotrope.errors import InputError
from isotrope.methods.frame.auxiliary import Auxiliary
from isotrope.methods.frame.method import Batch, Settings, View
from isotrope.tokens.padded import Tokens
from isotrope.towers.keeping import Role, Trained
from isotrope.views.masking import Masked, mask_tokens


@dataclass(frozen=True)
class MLMSettings(Settings):
    mask_rate: float = 0.15


class MaskedLanguageModel(Auxiliary):
    """L = mean over masked tokens of −log p(token | the rest); the softmax is taken at masked positions only."""

    name = "mlm"
    title = "Masked language modelling"
    paper = "Devlin, Chang, Lee, Toutanova. BERT: Pre-training of Deep Bidirectional Transformers. NAACL 2019"
    year = 2019
    needs = "sentences"
    needs_language_head = True
    ragged: tuple[str, ...] = ("token_losses",)
    parts: ClassVar[tuple[str, ...]] = ("masked",)
    terms: ClassVar[tuple[str, ...]] = ("mlm",)
    keeps = "last"
    judges_itself = True
    keep = 0.1  # of the tokens asked for: left as they are
    replace = 0.1  # and replaced by a random one; BERT's shares, which pre-training may change
    Settings: ClassVar[type[Settings]] = MLMSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if not 0 < settings.mask_rate < 1:
            raise InputError(f"mask_rate must lie between 0 and 1; {settings.mask_rate} was given.")

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        if encoder.language_model is None or encoder.text_tokenizer.mask is None:
            raise InputError("Masked language modelling needs a model with a masked-language head and a [MASK] token.")
        self.scores, head = vocabulary_scores(encoder.language_model)
        return {"language_head": Trained(head)}

    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        return {"masked": self.masked(tokens, rng)}

    def masked(self, tokens: Tokens, rng: np.random.Generator) -> Masked:
        return mask_tokens(tokens, self.encoder.text_tokenizer, rng, self.settings.mask_rate, self.keep, self.replace)

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        view: Masked = batch["masked"]
        states = self.encoder.states(view.tokens)
        return {"token_losses": self.token_losses(states, view)}

    def token_losses(self, states: Tensor, view: Masked) -> Tensor:
        """−log p of each token that is asked for, from the states [rows, width, d] of the masked rows."""
        return self.losses_at(states, view.asked, view.labels.flatten()[view.asked])

    def losses_at(self, states: Tensor, asked: Tensor, answers: Tensor) -> Tensor:
        """The same at flat places of the states: what pre-training calls, whose rows are masked on the device."""
        return cross_entropy(self.scores_at(states, asked), answers, reduction="none")

    def scores_at(self, states: Tensor, asked: Tensor) -> Tensor:
        """Scores [asked, vocabulary]; the softmax is taken there alone."""
        places = asked.unsqueeze(1).expand(
            -1, states.shape[-1]
        )  # gathered: the backward of an index would sort them on a GPU
        return self.scores(states.flatten(0, 1).gather(0, places)).float()

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        return {"mlm": representations["token_losses"].mean()}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"mlm_perplexity": representations["token_losses"].mean().exp()}
