"""Masked language modelling (Devlin et al. 2019): as a method of its own, and as a term beside any other."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.language_head import vocabulary_scores
from isotrope.encoders.roles import Role, Trained
from isotrope.errors import InputError
from isotrope.methods.base import Batch, Method, Settings, View
from isotrope.views.masking import Masked, mask_tokens
from isotrope.views.tokens import Tokens


@dataclass(frozen=True)
class MLMSettings(Settings):
    mask_rate: float = 0.15


class MaskedLanguageModel(Method):
    """L = mean over masked tokens of −log p(token | the rest); the softmax is taken at masked positions only."""

    name = "mlm"
    title = "Masked language modelling"
    paper = "Devlin, Chang, Lee, Toutanova. BERT: Pre-training of Deep Bidirectional Transformers. NAACL 2019"
    year = 2019
    needs = "sentences"
    needs_language_head = True
    ragged: tuple[str, ...] = ("token_losses",)
    keeps = "last"
    judges_itself = True
    Settings: ClassVar[type[Settings]] = MLMSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if not 0 < settings.mask_rate < 1:
            raise InputError(f"mask_rate must lie between 0 and 1; {settings.mask_rate} was given.")

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        if encoder.language_model is None or encoder.tokeniser.mask is None:
            raise InputError("Masked language modelling needs a model with a masked-language head and a [MASK] token.")
        self.scores, head = vocabulary_scores(encoder.language_model)
        return {"language_head": Trained(head)}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"masked": self.masked(self.frame(records.tokens()), rng)}

    def masked(self, tokens: Tokens, rng: np.random.Generator) -> Masked:
        return mask_tokens(tokens, self.encoder.tokeniser, rng, self.settings.mask_rate)

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        view: Masked = batch["masked"]
        states = self.encoder.states(view.tokens)
        scores = self.scores(states.flatten(0, 1)[view.asked]).float()
        losses = torch.nn.functional.cross_entropy(scores, view.labels.flatten()[view.asked], reduction="none")
        return {"token_losses": losses}

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        return {"mlm": representations["token_losses"].mean()}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {"mlm_perplexity": representations["token_losses"].mean().exp()}


class WithMaskedLanguageModel(Method):
    """Any method plus ``weight`` times MLM over masked copies of its texts, in a forward of their own (SimCSE, section 4).

    A method may name the views to mask; by default all that are texts.
    """

    def __init__(self, method: Method, mlm: MaskedLanguageModel, weight: float) -> None:
        super().__init__(method.settings, method.encoder, method.max_length, method.corpus)
        self.method, self.mlm, self.weight = method, mlm, weight
        self.batches, self.keeps, self.betas = method.batches, method.keeps, method.betas
        self.ragged, self.judges_itself = (*method.ragged, *mlm.ragged), method.judges_itself
        self.role = torch.nn.ModuleDict({**method.role, **mlm.role})

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        views = self.method.views(records, rng)
        chosen = views if self.method.masked_views is None else self.method.masked_views
        texts = {name: view for name, view in views.items() if name in chosen and isinstance(view, Tokens)}
        masked = {f"masked {name}": self.mlm.masked(view, rng) for name, view in texts.items()}
        return {**views, **masked}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        own = {name: view for name, view in batch.views.items() if not isinstance(view, Masked)}
        masked = [view for view in batch.views.values() if isinstance(view, Masked)]
        losses = [self.mlm.represent(replace(batch, views={"masked": view}))["token_losses"] for view in masked]
        return {**self.method.represent(replace(batch, views=own)), "token_losses": torch.cat(losses)}

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        return {**self.method.loss(representations, batch), **self.mlm.loss(representations, batch)}

    def weights(self) -> dict[str, float]:
        return {**self.method.weights(), "mlm": self.weight}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return self.method.candidates(representations)

    def remarks(self) -> list[str]:
        return self.method.remarks()

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**self.method.on_held_out(representations), **self.mlm.on_held_out(representations)}

    def after_step(self, representations: dict[str, Tensor]) -> None:
        self.method.after_step(representations)

    def export(self) -> Encoder:
        return self.method.export()
