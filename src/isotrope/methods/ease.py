"""EASE (Nishikawa et al. 2022): a sentence stands near the entity it links to, beside SimCSE's two dropout views."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.corpus import Records
from isotrope.data.entity_vectors import read_vectors
from isotrope.data.links import NONE, Links
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.dense import Dense
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card
from isotrope.methods.simcse import SimCSE, SimCSESettings
from isotrope.objectives import entity_contrast
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers

MAPS = ("linear", "tanh")
SPREAD = 0.05  # entities without a vector begin between −0.05 and 0.05, as in the released code
LINKS = 32  # entities of one sentence that are looked at, beside the record's own


@dataclass(frozen=True)
class EASESettings(SimCSESettings):
    entity_weight: float = 0.01  # λ, of the entity term
    entity_temperature: float = 0.05  # τ_e; the released code has 100, which leaves the term at its start
    hard_negative_weight: float = 1.0  # α, of a sentence's own hard entity; e in the released code
    entity_map: str = (
        "linear"  # from the table to the encoder's width: linear (W·e), or tanh (tanh(W·e + b), the released code)
    )
    vectors: str | None = None  # Wikipedia2Vec or word2vec text file with vectors of entities; none: the table is drawn


class EASE(SimCSE):
    """L = ℓˢ + λ·ℓᵉ; ℓˢ is SimCSE's, and s_i its first view:

    ℓᵉ_i = −log  exp(cos(s_i, W·e_i)/τ_e) / Σ_j [ exp(cos(s_i, W·e_j)/τ_e) + α^{1[i=j]} exp(cos(s_i, W·e⁻_j)/τ_e) ]

    An entity that sentence i links to, in this record or in another, is never a negative of i, whoever brings it into
    the batch. A record without a hard entity brings none.
    """

    card = Card(
        name="ease",
        title="EASE, entities as positives",
        paper="Nishikawa, Ri, Yamada, Tsuruoka, Echizen. EASE: Entity-Aware Contrastive Learning of Sentence Embedding. NAACL 2022",
        year=2022,
        needs="linked",
        family="contrastive",
    )
    Settings = EASESettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        if not settings.entity_weight >= 0:
            raise InputError(f"entity_weight must not be negative; {settings.entity_weight} was given.")
        if not settings.entity_temperature > 0:
            raise InputError(f"entity_temperature must be above 0; {settings.entity_temperature} was given.")
        if not settings.hard_negative_weight >= 0:
            raise InputError(
                f"hard_negative_weight is the weight α itself, not its logarithm; {settings.hard_negative_weight} was given."
            )
        if settings.entity_map not in MAPS:
            raise InputError(f"entity_map is one of {', '.join(MAPS)}; '{settings.entity_map}' was given.")
        if settings.entity_temperature > 1:
            warnings.warn(
                f"entity_temperature {settings.entity_temperature:g} divides the cosines: the entity term hardly moves the encoder.",
                stacklevel=2,
            )

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.corpus is None:
            raise InputError("EASE needs its data at the start: the table has a row for each entity.")
        self.links = Links(self.corpus)
        table = self._table(self.corpus.entities, encoder.dimension)
        tanh = self.settings.entity_map == "tanh"
        to_sentences = Dense(table.embedding_dim, encoder.dimension, bias=tanh, activation=nn.Tanh() if tanh else None)
        return {**super().towers(encoder), "entities": Trained(table), "map": Trained(to_sentences)}

    def _table(self, names: list[str], width: int) -> nn.Embedding:
        """A row for each entity of the data, from the file of vectors where it has one."""
        found = read_vectors(self.settings.vectors, names) if self.settings.vectors else {}
        if found:
            width = len(next(iter(found.values())))
        table = nn.Embedding(len(names), width)
        nn.init.uniform_(table.weight, -SPREAD, SPREAD)
        with torch.no_grad():
            for number, vector in found.items():
                table.weight[number] = torch.from_numpy(vector)
        return table

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        if records.corpus.fingerprint != self.links.corpus.fingerprint:
            raise InputError(
                "These records are not those that the entity table was made for; their entities have no rows in it."
            )
        links = np.full((len(records), 1 + LINKS), NONE)
        links[:, 0] = records.entities()
        for place, row in enumerate(records.rows):
            linked = self.links.linked(row)[:LINKS]
            links[place, 1 : 1 + len(linked)] = linked
        hard = [self.links.hard_entity(row, rng) for row in records.rows]
        return {**super().views(records, rng), "links": Numbers.of(links), "hard": Numbers.of(hard)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        links, hard = batch["links"].values, batch["hard"].values
        entities, hard_entities = (
            self.tower["map"](self.tower["entities"](numbers.clamp(min=0))) for numbers in (links[:, 0], hard)
        )
        return {
            **super().represent(batch),
            "entities": entities,
            "hard_entities": hard_entities,
            "links": links,
            "hard": hard,
        }

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        settings = self.settings
        links = representations["links"]
        numbers = torch.cat([links[:, 0], representations["hard"]])  # of the candidates
        entity = entity_contrast(
            representations["first"],
            representations["entities"],
            representations["hard_entities"],
            settings.entity_temperature,
            negative_weight=settings.hard_negative_weight,
            allowed=(numbers != NONE) & (numbers != links.unsqueeze(2)).all(dim=1),
        )
        return {**super().loss(representations, generator), "entity": entity}

    def weights(self) -> dict[str, float]:
        return {"entity": cast(float, self.settings.entity_weight)}
