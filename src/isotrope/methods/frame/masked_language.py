"""Masked language modelling as a capability: mlm is nothing else, other papers have it among their terms.

L = mean over masked tokens of −log p(token | the rest); the softmax is taken at masked positions only
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.language_head import answer_losses, vocabulary_scores
from isotrope.errors import InputError
from isotrope.methods.frame.auxiliary import Auxiliary
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.settings import ClosedShare, OpenShare, Settings
from isotrope.objectives.vectors import mean
from isotrope.tokens.padded import Tokens
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.masking import Masked, mask_tokens


@dataclass(frozen=True)
class MaskingSettings(Settings):
    """BERT's shares: of the masked tokens 80 % become [MASK], 10 % stay, 10 % become a random token."""

    mask_rate: Annotated[OpenShare, "Probability with which a token is masked"] = 0.15
    keep: Annotated[ClosedShare, "Share of the masked tokens that stay as they are"] = 0.1
    replace: Annotated[ClosedShare, "Share of the masked tokens that become a random one"] = 0.1

    def rules(self) -> None:
        if self.keep + self.replace > 1:
            raise InputError(
                f"keep and replace are shares of the masked tokens; {self.keep} and {self.replace} sum to more than 1."
            )


M = TypeVar("M", bound=MaskingSettings)


class MaskedLanguage(Auxiliary[M], OwnTask):
    """Masks tokens of framed texts and predicts them with the model's own head, which is trained too."""

    language_head: ClassVar[bool] = True
    ragged: tuple[str, ...] = ("token_losses",)
    parts: ClassVar[tuple[str, ...]] = ("masked",)
    terms: ClassVar[tuple[str, ...]] = ("mlm",)
    keeps: str = "last"

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if encoder.language_model is None or encoder.text_tokenizer.mask is None:
            raise InputError("Masked language modelling needs a model with a masked-language head and a [MASK] token.")
        self.scores, head = vocabulary_scores(encoder.language_model)
        return {"language_head": Trained(head)}

    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        return {"masked": self.masked(tokens, rng)}

    def masked(self, tokens: Tokens, rng: np.random.Generator) -> Masked:
        chosen = self.settings
        return mask_tokens(tokens, self.encoder.text_tokenizer, rng, chosen.mask_rate, chosen.keep, chosen.replace)

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        view: Masked = batch["masked"]
        return {"token_losses": self.losses_of(self.encoder.states_at(view.tokens, view.asked), view)}

    def losses_of(self, asked: Tensor, view: Masked) -> Tensor:
        """−log p of each masked token, from its state."""
        return answer_losses(self.scores, asked, view.labels.flatten()[view.asked])

    def token_losses(self, states: Tensor, view: Masked) -> Tensor:
        """The same from the states [rows, width, d] of the masked rows."""
        return self.losses_at(states, view.asked, view.labels.flatten()[view.asked])

    def losses_at(self, states: Tensor, asked: Tensor, answers: Tensor) -> Tensor:
        """The same at flat places of the states, for rows that are masked on the device."""
        return cross_entropy(self.scores_at(states, asked), answers, reduction="none")

    def scores_at(self, states: Tensor, asked: Tensor) -> Tensor:
        """Scores [asked, vocabulary]; the softmax is taken there alone."""
        # Gathered: the backward of an index would sort the places on a GPU.
        places = asked.unsqueeze(1).expand(-1, states.shape[-1])
        return self.scores(states.flatten(0, 1).gather(0, places)).float()

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {"mlm": mean(representations["token_losses"])}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"mlm_perplexity": representations["token_losses"].mean().exp()}
