"""SimCSE (Gao, Yao, Chen 2021): a sentence and itself under another dropout mask are a positive pair."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, TypeVar, cast

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.pair_loss import OneWay, PairLossSettings, check_temperature_is_used, pair_loss
from isotrope.methods.frame.settings import DropoutSetting, OneOf, Settings, TemperatureSetting, Weight
from isotrope.methods.frame.temperature import check_learned, temperature_of, temperature_tower
from isotrope.objectives import info_nce
from isotrope.towers.heads import tanh_head
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.edits import Edit
from isotrope.views.two_views import NONE, edited, parse_two_views


@dataclass(frozen=True)
class ContrastSettings(Settings):
    """What both forms of the paper share."""

    temperature: TemperatureSetting = 0.05
    dropout: DropoutSetting = None
    head: Annotated[
        str,
        OneOf("auto", "train-only", "kept", "none"),
        "Linear + tanh head; auto: on cls pooling with nothing after it, as in the paper",
    ] = "auto"
    learn_temperature: Annotated[bool, "Learn the temperature, starting from the one given"] = False

    def rules(self) -> None:
        check_learned(self.temperature, self.learn_temperature)


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


C = TypeVar("C", bound=ContrastSettings)


class HeadedContrast(Method[C]):
    """An encoder read out through SimCSE's head, and a temperature that may be learned. Subclasses bring the views."""

    auto_head: ClassVar[str] = "train-only"

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.settings.dropout is not None:
            set_dropout(encoder.backbone, self.settings.dropout)
        self.head_kept = self._head() == "kept"
        head: dict[str, Tower] = {} if self._head() == "none" else {"head": Trained(tanh_head(encoder.dimension))}
        return {**head, **temperature_tower(self.settings.temperature, self.settings.learn_temperature)}

    def _head(self) -> str:
        if self.settings.head != "auto":
            return self.settings.head
        plain_cls = self.encoder.pooling.name == "cls" and not len(self.encoder.parts)
        return self.auto_head if plain_cls else "none"

    def read(self, vectors: Tensor) -> Tensor:
        return self.tower["head"](vectors) if "head" in self.tower else vectors

    def export(self) -> Encoder:
        head = [cast(Trained, self.tower["head"]).module] if self.head_kept else []
        return self.encoder.with_parts([*self.encoder.parts, *head])


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

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["second"])


@dataclass(frozen=True)
class UnsupervisedSettings(PairLossSettings, SimCSESettings):
    """The second view, and the loss that compares it."""

    def rules(self) -> None:
        super().rules()
        check_temperature_is_used(self, self.learn_temperature)


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
    )
    Settings = UnsupervisedSettings

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        views = OneWay(representations["first"], representations["second"])
        return pair_loss(self.settings, views, temperature_of(self), generator)


@dataclass(frozen=True)
class SupervisedSettings(ContrastSettings):
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
    )
    Settings = SupervisedSettings
    auto_head = "kept"
    shared_views = ("anchor", "positive", "negative")

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {field: self.frame(records.tokens(field)) for field in records.fields}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        vectors = self.encoder.embed(*(batch[field] for field in batch.views))
        return {field: self.read(part) for field, part in zip(batch.views, vectors, strict=True)}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        negatives = representations.get("negative")
        pair = representations["anchor"], representations["positive"]
        return {"contrastive": info_nce(*pair, temperature_of(self), negatives, self.settings.hard_negative_weight)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["positive"]) + len(representations.get("negative", ()))
