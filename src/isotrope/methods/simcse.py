"""SimCSE (Gao, Yao, Chen 2021): a sentence and itself under another dropout mask are a positive pair."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, TypeVar

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.headed_contrast import ContrastSettings, HeadedContrast
from isotrope.methods.frame.method import Card, Prepared
from isotrope.methods.frame.pair_loss import OneWay, PairLossSettings, check_temperature_is_used, pair_loss
from isotrope.methods.frame.second_tower import SEPARATE, TowerSettings, embed_pairs, with_second
from isotrope.methods.frame.settings import OneOf, Weight
from isotrope.methods.frame.temperature import temperature_of
from isotrope.objectives import info_nce
from isotrope.towers.keeping import Tower
from isotrope.views.edits import Edit
from isotrope.views.segments import document_sizes
from isotrope.views.two_views import NONE, edited, parse_two_views

DROPOUT, NEXT = "dropout", "next-sentence"


@dataclass(frozen=True)
class SimCSESettings(ContrastSettings):
    """What the paper's ablations vary: the second view is edited, or has the first one's dropout mask."""

    second_edits: Annotated[
        str, 'Edits of the second view, such as delete:0.1 or crop:0.9; a comma is "then", a slash "or"'
    ] = "none"
    fixed_mask: Annotated[bool, "Give both views the same dropout mask"] = False

    def rules(self) -> None:
        super().rules()
        parse_two_views(NONE, self.second_edits)
        if self.fixed_mask and self.second_edits != NONE:
            raise InputError(
                "fixed_mask gives both views one mask, so they must be one text; "
                f"second_edits {self.second_edits} edits one."
            )


P = TypeVar("P", bound=SimCSESettings)


class DropoutPair(HeadedContrast[P]):
    """Two dropout views of a sentence, in one forward pass."""

    shared_views = ("first", "second")

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        sequences = records.tokens()
        first = self.frame(sequences)
        edited_too = self.settings.second_edits != NONE
        return {"first": first, "second": self.frame(edited(sequences, self.second_edit, rng)) if edited_too else first}

    @cached_property
    def second_edit(self) -> Edit:
        return parse_two_views(NONE, self.settings.second_edits)(self.encoder.text_tokenizer)[1]

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        if self.settings.fixed_mask:
            (vectors,) = self.encoder.embed(batch["first"])
            return dict.fromkeys(("first", "second"), self.read(vectors))
        # The same rows twice in one forward: each row draws its own dropout mask.
        first, second = self.encoder.embed(batch["first"], batch["second"])
        return {"first": self.read(first), "second": self.read(second)}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {"contrastive": info_nce(representations["first"], representations["second"], temperature_of(self))}


@dataclass(frozen=True)
class UnsupervisedSettings(PairLossSettings, TowerSettings, SimCSESettings):
    """The paper's comparisons: what the positive is, how many encoders there are, the loss."""

    positive: Annotated[
        str, OneOf(DROPOUT, NEXT), "Positive of a sentence: itself under another mask, or the next one of its document"
    ] = DROPOUT

    def rules(self) -> None:
        super().rules()
        check_temperature_is_used(self, self.learn_temperature)
        if self.fixed_mask and (self.positive == NEXT or self.towers == SEPARATE):
            raise InputError("fixed_mask gives both views one mask, so they must be one text through one encoder.")
        if self.positive == NEXT and self.second_edits != NONE:
            raise InputError("positive next-sentence takes that sentence as it is; leave second_edits out.")


class SimCSE(DropoutPair[UnsupervisedSettings]):
    """ℓ_i = −log exp(cos(h_i, h'_i)/τ) / Σ_j exp(cos(h_i, h'_j)/τ); h, h' the same text under two dropout masks.

    When to use it: plain sentences and nothing else. What goes wrong: duplicates are false negatives (a batch never
    holds two), and without dropout both views are equal. Siblings: ``simclr`` edits the text, ``moco`` has a queue,
    ``vascl`` and ``dclr`` choose their negatives.
    """

    card = Card(
        name="simcse",
        title="SimCSE, unsupervised",
        paper="Gao, Yao, Chen. SimCSE: Simple Contrastive Learning of Sentence Embeddings. EMNLP 2021",
        year=2021,
        needs="sentences",
        family="contrastive",
        read_out="cls",
    )
    Settings = UnsupervisedSettings
    advised_for = ("sentences",)

    @classmethod
    def record_types(cls, settings: UnsupervisedSettings) -> tuple[str, ...]:
        return ("documents",) if settings.positive == NEXT else super().record_types(settings)

    def prepare(self, corpus: Corpus) -> Prepared:
        if self.settings.positive == DROPOUT:
            return Prepared()
        last = np.cumsum(document_sizes(corpus, self.card.name)) - 1
        followed = np.ones(len(corpus), dtype=np.bool_)
        followed[last] = False
        return Prepared(followed)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        return with_second(self.settings, encoder, super().towers(encoder))

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        if self.settings.positive == DROPOUT:
            return super().views(records, rng)
        following = [records.corpus.tokens(row + 1) for row in records.rows]
        return {"first": self.frame(records.tokens()), "second": self.frame(following)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        if self.settings.towers != SEPARATE:
            return super().represent(batch)
        first, second = embed_pairs(self, batch["first"], [batch["second"]])
        return {"first": self.read(first), "second": self.read(second, second=True)}

    def nested_vectors(self) -> tuple[str, ...]:
        return self.without_lost_head("first", "second")

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        views = OneWay(representations["first"], representations["second"])
        return pair_loss(self.settings, views, temperature_of(self), generator)


@dataclass(frozen=True)
class SupervisedSettings(TowerSettings, ContrastSettings):
    """``hard_negative_weight`` is α itself; the released code's flag of that name is log α."""

    hard_negative_weight: Annotated[
        Weight, "Weight α of a record's own hard negative in the denominator; not its logarithm"
    ] = 1.0


class SupervisedSimCSE(HeadedContrast[SupervisedSettings]):
    """ℓ_i = −log exp(s_ii⁺) / Σ_j [exp(s_ij⁺) + α^{1[i=j]} exp(s_ij⁻)]

    Entailments attract, contradictions are hard negatives. When to use it: triples, or pairs that belong together.
    What goes wrong: the hard negative of one record may be a positive of another, so pairs must not repeat in a batch.
    Siblings: ``sbert`` classifies the same pairs, ``cosent`` orders scored ones.
    """

    card = Card(
        name="simcse-supervised",
        title="SimCSE, supervised",
        paper="Gao, Yao, Chen. SimCSE: Simple Contrastive Learning of Sentence Embeddings. EMNLP 2021",
        year=2021,
        needs="triples",
        accepts=("pairs",),
        family="contrastive",
        read_out="cls",
    )
    Settings = SupervisedSettings
    adapting = {"temperature": 0.03, "learning_rate": 2e-4, "max_length": 128}  # docs/notes/packages.md
    advised_for = ("triples", "pairs")
    auto_head = "kept"
    shared_views = ("anchor", "positive", "negative")

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        return with_second(self.settings, encoder, super().towers(encoder))

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {field: self.frame(records.tokens(field)) for field in records.fields}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        anchor, *others = embed_pairs(self, batch["anchor"], [batch[field] for field in list(batch.views)[1:]])
        read = [self.read(anchor), *(self.read(part, second=True) for part in others)]
        return dict(zip(batch.views, read, strict=True))

    def nested_vectors(self) -> tuple[str, ...]:
        return self.without_lost_head(*self.shared_views)

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        negatives = representations.get("negative")
        pair = representations["anchor"], representations["positive"]
        return {"contrastive": info_nce(*pair, temperature_of(self), negatives, self.settings.hard_negative_weight)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["positive"]) + len(representations.get("negative", ()))
