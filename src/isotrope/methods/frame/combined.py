"""What the loop trains: a method, and the auxiliary losses that are added to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.auxiliary import Auxiliary
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.contract import check_representations, check_shared, check_terms, check_views
from isotrope.methods.frame.learner import Learner
from isotrope.methods.frame.matryoshka import base_term, check_widths, nested_terms
from isotrope.methods.frame.method import Method
from isotrope.methods.frame.own_task import OwnTask
from isotrope.tokens.padded import Tokens
from isotrope.towers.keeping import Tower


@dataclass(frozen=True)
class Added:
    """An auxiliary loss and the weight of its terms."""

    auxiliary: Auxiliary[Any]
    weight: float


class Combined(Learner):
    """L = L_method + Σ weight · L_auxiliary. An auxiliary reads the method's shared views in a forward of its own."""

    def __init__(self, method: Method[Any], added: Sequence[Added] = (), widths: Sequence[int] = ()) -> None:
        super().__init__()
        self.method = method
        self.widths = check_widths(widths, method)
        self.auxiliaries = nn.ModuleList([one.auxiliary for one in added])
        self.added = tuple(added)
        if added and not method.shared_views:
            names = ", ".join(one.auxiliary.card.name for one in added)
            raise InputError(f"{method.card.name} shares no view of its text, so {names} cannot be added to it.")

    @property
    def encoder(self) -> Encoder:
        return self.method.encoder

    @property
    def towers(self) -> dict[str, Tower]:
        parts = (self.method, *(one.auxiliary for one in self.added))
        return {name: tower for part in parts for name, tower in part.tower.items()}  # type: ignore[misc]

    @property
    def keeps(self) -> str:
        return self.method.keeps

    def of(self, batch: Batch) -> Combined:
        return self

    def export(self) -> Encoder:
        return self.method.export()

    def further(self) -> dict[str, Encoder]:
        return self.method.further()

    @property
    def ragged(self) -> tuple[str, ...]:
        return (*self.method.ragged, *(name for one in self.added for name in one.auxiliary.ragged))

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        views = self.method.views(records, rng)
        check_views(self.method, views)
        shared = {name: view for name, view in views.items() if name in self.method.shared_views}
        extra: dict[str, View] = {}
        if self.added:
            check_shared(self.method, shared)
        for one in self.added:
            for text, view in shared.items():
                assert isinstance(view, Tokens)
                parts = one.auxiliary.views_of(view, rng)
                extra |= {f"{one.auxiliary.card.name}:{part}:{text}": made for part, made in parts.items()}
        return {**views, **extra}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        own = {name: view for name, view in batch.views.items() if ":" not in name}
        found: dict[str, Tensor] = {}
        for one in reversed(self.added):
            found |= self._represent_added(one.auxiliary, batch)
        representations = self.method.represent(replace(batch, views=own))
        check_representations(self.method, representations, batch.size)
        return {**representations, **found}

    def _represent_added(self, auxiliary: Auxiliary[Any], batch: Batch) -> dict[str, Tensor]:
        texts: dict[str, dict[str, View]] = {}
        for name, view in batch.views.items():
            owner, _, rest = name.partition(":")
            if rest and owner == auxiliary.card.name:
                part, _, text = rest.partition(":")
                texts.setdefault(text, {})[part] = view
        found = [auxiliary.represent(replace(batch, views=parts)) for parts in texts.values()]
        return {name: torch.cat([each[name] for each in found]) for name in found[0]}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        terms = nested_terms(self.method, representations, generator, self.widths)
        check_terms(self.method, terms)
        for one in self.added:
            terms = {**terms, **one.auxiliary.loss(representations, generator)}
        return terms

    def total(self, terms: Mapping[str, Tensor]) -> Tensor:
        """The weighted sum of the terms."""
        weights = dict(self.method.weights())
        for one in self.added:
            shares = one.auxiliary.weights()
            weights |= {term: one.weight * shares.get(term, 1.0) for term in one.auxiliary.terms}
        return torch.stack([weights.get(base_term(name), 1.0) * term for name, term in terms.items()]).sum()

    def measures(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        parts = (self.method, *(one.auxiliary for one in self.added))
        return {name: value for part in parts for name, value in part.measures(representations).items()}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Of the method's own task, and of those of the auxiliaries."""
        parts = (self.method, *(one.auxiliary for one in self.added))
        tasks = [part for part in parts if isinstance(part, OwnTask)]
        return {name: value for task in tasks for name, value in task.on_held_out(representations).items()}

    def after_update(self, representations: dict[str, Tensor]) -> None:
        """Momentum towers follow, queues take their keys."""
        for tower in self.towers.values():
            tower.after_update(representations)
