"""A task of its own beside any method, over the method's texts: masked language modelling, replaced-token detection."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.method import Batch, Method, View
from isotrope.tokens.padded import Tokens


class Auxiliary(Method, ABC):
    """A method that can stand beside another: it needs nothing but framed texts.

    ``parts`` are the names of its views, ``terms`` those of its losses; beside another method these names must not meet
    the other's.
    """

    parts: ClassVar[tuple[str, ...]]
    terms: ClassVar[tuple[str, ...]]

    @abstractmethod
    def views_of(self, tokens: Tokens, rng: np.random.Generator) -> dict[str, View]:
        """Its views of some framed texts: one of each part."""

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return self.views_of(self.frame(records.tokens()), rng)


class Beside(Method):
    """Any method plus ``weight`` times an auxiliary over the method's texts, in a forward of its own (SimCSE, section
    4).

    A method may name the views that are taken (``masked_views``); by default all that are texts.
    """

    def __init__(self, method: Method, auxiliary: Auxiliary, weight: float) -> None:
        super().__init__(method.settings, method.encoder, method.max_length, method.corpus)
        self.method, self.auxiliary, self.weight = method, auxiliary, weight
        self.batches, self.keeps, self.betas, self.optimiser = (
            method.batches,
            method.keeps,
            method.betas,
            method.optimiser,
        )
        self.masked_views, self.scores_itself = method.masked_views, method.scores_itself
        self.ragged, self.judges_itself = (*method.ragged, *auxiliary.ragged), method.judges_itself
        self.role = torch.nn.ModuleDict({**method.role, **auxiliary.role})

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        views = self.method.views(records, rng)
        chosen = views if self.masked_views is None else self.masked_views
        texts = {name: view for name, view in views.items() if name in chosen and isinstance(view, Tokens)}
        extra = [(text, self.auxiliary.views_of(view, rng)) for text, view in texts.items()]
        return {**views, **{f"{part} {text}": view for text, parts in extra for part, view in parts.items()}}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        own: dict[str, View] = {}
        texts: dict[str, dict[str, View]] = {}
        for name, view in batch.views.items():
            part, _, text = name.partition(" ")
            if text and part in self.auxiliary.parts:
                texts.setdefault(text, {})[part] = view
            else:
                own[name] = view
        found = [self.auxiliary.represent(replace(batch, views=parts)) for parts in texts.values()]
        joined = {name: torch.cat([each[name] for each in found]) for name in found[0]}
        return {**self.method.represent(replace(batch, views=own)), **joined}

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        return {**self.method.loss(representations, batch), **self.auxiliary.loss(representations, batch)}

    def weights(self) -> dict[str, float]:
        shares = self.auxiliary.weights()
        return {**self.method.weights(), **{term: self.weight * shares.get(term, 1.0) for term in self.auxiliary.terms}}

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**self.method.measures(representations), **self.auxiliary.measures(representations)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return self.method.candidates(representations)

    def remarks(self) -> list[str]:
        return self.method.remarks()

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        return {**self.method.on_held_out(representations), **self.auxiliary.on_held_out(representations)}

    def after_step(self, representations: dict[str, Tensor]) -> None:
        self.method.after_step(representations)

    def export(self) -> Encoder:
        return self.method.export()
