"""EASE (Nishikawa et al. 2022): a sentence lies near the entity it links to, and near its second dropout view."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.corpus import Corpus, Records
from isotrope.data.entity_vectors import read_vectors
from isotrope.data.links import NONE, Links
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.dense import Dense
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Prepared
from isotrope.methods.frame.settings import OneOf, TemperatureSetting, Weight
from isotrope.methods.simcse import DropoutPair, SimCSESettings
from isotrope.objectives import entity_contrast
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers

SPREAD = 0.05  # entities without a vector begin between −0.05 and 0.05, as in the released code
LINKS = 32  # entities of one sentence that are looked at, besides the record's own


@dataclass(frozen=True)
class EASESettings(SimCSESettings):
    """SimCSE's, and those of the entity term."""

    entity_weight: Annotated[Weight, "Weight λ of the entity term"] = 0.01
    entity_temperature: Annotated[
        TemperatureSetting, "Temperature τ_e of the entity term; 100 in the released code"
    ] = 0.05
    hard_negative_weight: Annotated[
        Weight, "Weight α of a sentence's own hard entity, not its logarithm; e in the released code"
    ] = 1.0
    entity_map: Annotated[
        str, OneOf("linear", "tanh"), "Map from the table to the encoder: W·e, or tanh(W·e + b) as in the released code"
    ] = "linear"
    vectors: Annotated[
        str | None, "Wikipedia2Vec or word2vec text file with vectors of entities; none: the table is drawn at random"
    ] = None
    pages: Annotated[
        str,
        OneOf("auto", "needed", "ignored"),
        "Entities of the sentence's page are no hard entities of it: auto, where the data name pages; needed: data "
        "without pages are refused; ignored: those of the sentence alone",
    ] = "auto"

    def rules(self) -> None:
        super().rules()
        if self.entity_temperature > 1:
            warnings.warn(
                f"entity_temperature {self.entity_temperature:g} divides the cosines: the entity term hardly moves the "
                "encoder.",
                stacklevel=2,
            )


class EASE(DropoutPair[EASESettings]):
    """L = ℓˢ + λ·ℓᵉ; ℓˢ is SimCSE's, and s_i its first view:

    ℓᵉ_i = −log  exp(cos(s_i, W·e_i)/τ_e) / Σ_j [ exp(cos(s_i, W·e_j)/τ_e) + α^{1[i=j]} exp(cos(s_i, W·e⁻_j)/τ_e) ]

    An entity that sentence i links to, in this record or in another, is never a negative of i, whoever brings it into
    the batch. A hard entity that is drawn by its type stands on another page, where pages are known. A record without a
    hard entity brings none.

    When to use it: sentences that link to entities, such as those of an encyclopedia. What goes wrong: the released
    code's temperature of 100 leaves the entity term where it began; a table that is drawn at random needs many
    sentences for each entity. Siblings: ``simcse`` is the sentence term alone, ``supcon`` compares texts of a class.
    """

    card = Card(
        name="ease",
        title="EASE, entities as positives",
        paper="Nishikawa, Ri, Yamada, Tsuruoka, Echizen. EASE: Entity-Aware Contrastive Learning of Sentence "
        "Embedding. NAACL 2022",
        year=2022,
        needs="linked",
        family="contrastive",
        read_out="cls",
    )
    Settings = EASESettings

    def prepare(self, corpus: Corpus) -> Prepared:
        unknown = int((corpus.page_numbers() == NONE).sum())
        if self.settings.pages == "needed" and unknown:
            raise InputError(
                f"{unknown:,} of {len(corpus):,} records name no page (column page), and pages is 'needed'; "
                "`isotrope links` writes pages; with pages auto the entities of the sentence alone are left out.",
                setting="pages",
            )
        self.links = Links(corpus, by_page=self.settings.pages != "ignored")
        said = f"{unknown:,} of {len(corpus):,} records name no page: a hard entity of their type may stand on it."
        return Prepared(remarks=(said,) if 0 < unknown < len(corpus) and self.settings.pages == "auto" else ())

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.corpus is None:
            raise InputError("EASE needs its data at the start: the table has a row for each entity.")
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
                table.weight[number] = torch.tensor(vector)
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
        links, hard = batch["links"].values, batch["hard"].values  # numbers of entities; the record's own comes first
        # NONE, where a record has no hard entity, reads row 0 of the table; ``loss`` does not allow it as a candidate.
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
        links = representations["links"]  # [batch, 1 + LINKS]
        numbers = torch.cat([links[:, 0], representations["hard"]])  # of the candidates: all entities, all hard ones
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
        return {"entity": self.settings.entity_weight}
