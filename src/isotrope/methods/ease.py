"""EASE (Nishikawa et al. 2022): a sentence stands near the entity it links to, beside SimCSE's two dropout views."""

from __future__ import annotations

import itertools
import warnings
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from isotrope.data.corpus import Corpus, Records
from isotrope.data.entity_vectors import read_vectors
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.heads import Dense
from isotrope.encoders.roles import Role, Trained
from isotrope.errors import InputError
from isotrope.methods.base import Batch, View
from isotrope.methods.simcse import SimCSE, SimCSESettings
from isotrope.objectives import entity_contrast
from isotrope.views.numbers import Numbers

MAPS = ("linear", "tanh")
SPREAD = 0.05  # entities without a vector begin between −0.05 and 0.05, as in the released code
TRIES = 10  # at an entity of the same type that the sentence does not link to
NONE = -1


@dataclass(frozen=True)
class EASESettings(SimCSESettings):
    entity_weight: float = 0.01  # λ, of the entity term
    entity_temperature: float = 0.05  # τ_e; the released code has 100, which leaves the term at its start
    hard_negative_weight: float = 1.0  # α, of a sentence's own hard entity; e in the released code
    entity_map: str = "linear"  # from the table to the encoder's width: linear (W·e), or tanh (tanh(W·e + b), the released code)
    vectors: str | None = None  # Wikipedia2Vec or word2vec text file with vectors of entities; none: the table is drawn


class EASE(SimCSE):
    """L = ℓˢ + λ·ℓᵉ; ℓˢ is SimCSE's, and s_i its first view:

    ℓᵉ_i = −log  exp(cos(s_i, W·e_i)/τ_e) / Σ_j [ exp(cos(s_i, W·e_j)/τ_e) + α^{1[i=j]} exp(cos(s_i, W·e⁻_j)/τ_e) ]

    The entity of i is never a negative of i, whichever record of the batch brings it; a record without a hard entity brings none.
    """

    name = "ease"
    title = "EASE, entities as positives"
    paper = "Nishikawa, Ri, Yamada, Tsuruoka, Echizen. EASE: Entity-Aware Contrastive Learning of Sentence Embedding. NAACL 2022"
    year = 2022
    needs = "linked"
    Settings = EASESettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        if not settings.entity_weight >= 0:
            raise InputError(f"entity_weight must not be negative; {settings.entity_weight} was given.")
        if not settings.entity_temperature > 0:
            raise InputError(f"entity_temperature must be above 0; {settings.entity_temperature} was given.")
        if not settings.hard_negative_weight >= 0:
            raise InputError(f"hard_negative_weight is the weight α itself, not its logarithm; {settings.hard_negative_weight} was given.")
        if settings.entity_map not in MAPS:
            raise InputError(f"entity_map is one of {', '.join(MAPS)}; '{settings.entity_map}' was given.")
        if settings.entity_temperature > 1:
            warnings.warn(
                f"entity_temperature {settings.entity_temperature:g} divides the cosines: the entity term hardly moves the encoder.",
                stacklevel=2,
            )

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        table = self._table(encoder.dimension)
        tanh = self.settings.entity_map == "tanh"
        to_sentences = Dense(table.embedding_dim, encoder.dimension, bias=tanh, activation=nn.Tanh() if tanh else None)
        return {**super().roles(encoder), "entities": Trained(table), "map": Trained(to_sentences)}

    def _table(self, width: int) -> nn.Embedding:
        """A row for each entity of the data, from the file of vectors where it has one."""
        names = self.data.entities
        found = read_vectors(self.settings.vectors, names) if self.settings.vectors else {}
        if found:
            width = len(next(iter(found.values())))
        table = nn.Embedding(len(names), width)
        nn.init.uniform_(table.weight, -SPREAD, SPREAD)
        with torch.no_grad():
            for number, vector in found.items():
                table.weight[number] = torch.from_numpy(vector)
        return table

    @property
    def data(self) -> Corpus:
        if self.corpus is None:
            raise InputError("EASE needs its data at the start: the table has a row for each entity.")
        return self.corpus

    @cached_property
    def by_type(self) -> list[npt.NDArray[np.int64]]:
        """Of each type, the entities that carry it, each once."""
        sorts, entities = np.unique(np.stack([self.data.type_numbers(), self.data.numbers("entity")]), axis=1).astype(np.int64)
        begins = np.searchsorted(sorts, np.arange(len(self.data.types) + 1))
        return [entities[begin:end] for begin, end in itertools.pairwise(begins)]

    @cached_property
    def by_sentence(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
        """Keys of the sentences, sorted, and the entity that each record links its sentence to."""
        order = np.argsort(self.data.keys[:, 0], kind="stable")
        return self.data.keys[order, 0], self.data.numbers("entity")[order]

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        if records.corpus.fingerprint != self.data.fingerprint:
            raise InputError("These records are not those that the entity table was made for; their entities have no rows in it.")
        hard = [self._hard_entity(row, given, rng) for row, given in zip(records.rows, records.hard_entities(), strict=True)]
        return {**super().views(records, rng), "entities": Numbers.of(records.entities()), "hard_entities": Numbers.of(hard)}

    def _hard_entity(self, row: int, given: npt.NDArray[np.int64], rng: np.random.Generator) -> int:
        """One that the data give, or one of the same type that the sentence does not link to; −1 where there is none."""
        if len(given):
            return int(rng.choice(given))
        sort = int(self.data.type_numbers()[row])
        if sort == NONE:
            return NONE
        keys, entities = self.by_sentence
        first, end = np.searchsorted(keys, self.data.keys[row, 0], "left"), np.searchsorted(keys, self.data.keys[row, 0], "right")
        drawn = rng.choice(self.by_type[sort], TRIES)
        free = drawn[~np.isin(drawn, entities[first:end])]
        return int(free[0]) if len(free) else NONE

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        found = super().represent(batch)
        for name in ("entities", "hard_entities"):
            numbers = batch[name].values
            vectors = self.role["map"](self.role["entities"](numbers.clamp(min=0)))
            found |= {name: vectors, f"numbers of {name}": numbers}
        return found

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        settings = self.settings
        entity = entity_contrast(
            representations["first"],
            representations["entities"],
            representations["hard_entities"],
            settings.entity_temperature,
            negative_weight=settings.hard_negative_weight,
            allowed=self.allowed(representations["numbers of entities"], representations["numbers of hard_entities"]),
        )
        return {**super().loss(representations, batch), "entity": entity}

    @staticmethod
    def allowed(entities: Tensor, hard: Tensor) -> Tensor:
        """[N, 2N]: whether a candidate is an entity at all, and not the very one that the sentence links to."""
        candidates = torch.cat([entities, hard])
        return (candidates != entities.unsqueeze(1)) & (candidates != NONE)

    def weights(self) -> dict[str, float]:
        return {"entity": cast(float, self.settings.entity_weight)}
