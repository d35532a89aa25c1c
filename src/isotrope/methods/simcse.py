"""SimCSE (Gao, Yao, Chen 2021): a sentence and itself under another dropout mask are a positive pair."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.methods.frame.method import Batch, Method, Settings, View
from isotrope.methods.frame.temperature import check_temperature, temperature_of, temperature_role
from isotrope.objectives import info_nce
from isotrope.towers.heads import tanh_head
from isotrope.towers.keeping import Role, Trained
from isotrope.views.edits import Edit
from isotrope.views.two_views import NONE, edited, parse_two_views

HEADS = ("auto", "train-only", "kept", "none")


@dataclass(frozen=True)
class ContrastSettings(Settings):
    """``head`` auto:

    Linear + tanh on cls pooling, none on others or after a head that is there; ``dropout`` None: the model's own.
    """

    temperature: float = 0.05
    dropout: float | None = None
    head: str = "auto"
    learn_temperature: bool = False  # the temperature is where it starts then


@dataclass(frozen=True)
class SimCSESettings(ContrastSettings):
    """What the paper's ablations vary: the second view is edited, or has the first one's dropout mask."""

    second_edits: str = "none"  # such as delete:0.1 or crop:0.9; a comma is "then", a slash "or"
    fixed_mask: bool = False


class SimCSE(Method):
    """ℓ_i = −log exp(cos(h_i, h'_i)/τ) / Σ_j exp(cos(h_i, h'_j)/τ); h, h' the same text under two dropout masks."""

    name = "simcse"
    title = "SimCSE, unsupervised"
    paper = "Gao, Yao, Chen. SimCSE: Simple Contrastive Learning of Sentence Embeddings. EMNLP 2021"
    year = 2021
    needs = "sentences"
    Settings: ClassVar[type[ContrastSettings]] = SimCSESettings
    auto_head = "train-only"

    @classmethod
    def check(cls, settings: Any) -> None:
        check_contrast(settings)
        parse_two_views(NONE, settings.second_edits)
        if settings.fixed_mask and settings.second_edits != NONE:
            raise InputError(
                f"fixed_mask gives both views one mask, so they must be one text; second_edits {settings.second_edits} edits one."
            )

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        if self.settings.dropout is not None:
            set_dropout(encoder.backbone, self.settings.dropout)
        self.head_kept = self._head() == "kept"
        head: dict[str, Role] = {} if self._head() == "none" else {"head": Trained(tanh_head(encoder.dimension))}
        return {**head, **temperature_role(self.settings.temperature, self.settings.learn_temperature)}

    def _head(self) -> str:
        if self.settings.head != "auto":
            return str(self.settings.head)
        plain_cls = self.encoder.pooling.name == "cls" and not len(self.encoder.parts)
        return self.auto_head if plain_cls else "none"

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

    def read(self, vectors: Tensor) -> Tensor:
        return self.role["head"](vectors) if "head" in self.role else vectors

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        return {"contrastive": info_nce(representations["first"], representations["second"], temperature_of(self))}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["second"])

    def export(self) -> Encoder:
        head = [cast(Trained, self.role["head"]).module] if self.head_kept else []
        return self.encoder.with_parts([*self.encoder.parts, *head])


def check_contrast(settings: Any) -> None:
    """Refuse a temperature, a dropout or a head that cannot work."""
    check_temperature(settings.temperature, settings.learn_temperature)
    if settings.dropout is not None and not 0 <= settings.dropout < 1:
        raise InputError(f"dropout must lie between 0 and 1; {settings.dropout} was given.")
    if settings.head not in HEADS:
        raise InputError(f"head is one of {', '.join(HEADS)}; '{settings.head}' was given.")


@dataclass(frozen=True)
class SupervisedSettings(ContrastSettings):
    """``hard_negative_weight`` is α itself; the released code's flag of that name is log α."""

    hard_negative_weight: float = 1.0


class SupervisedSimCSE(SimCSE):
    """ℓ_i = −log exp(s_ii⁺) / Σ_j [exp(s_ij⁺) + α^{1[i=j]} exp(s_ij⁻)]; entailments attract, contradictions are hard
    negatives.
    """

    name = "simcse-supervised"
    title = "SimCSE, supervised"
    needs = "triples"
    accepts = ("pairs",)
    Settings = SupervisedSettings
    auto_head = "kept"

    @classmethod
    def check(cls, settings: Any) -> None:
        check_contrast(settings)
        if settings.hard_negative_weight < 0:
            raise InputError(
                f"hard_negative_weight is the weight α itself, not its logarithm; {settings.hard_negative_weight} was given."
            )

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {field: self.frame(records.tokens(field)) for field in records.fields}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        vectors = self.encoder.embed(*(batch[field] for field in batch.views))
        return {field: self.read(part) for field, part in zip(batch.views, vectors, strict=True)}

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        negatives = representations.get("negative")
        pair = representations["anchor"], representations["positive"]
        return {"contrastive": info_nce(*pair, temperature_of(self), negatives, self.settings.hard_negative_weight)}

    def candidates(self, representations: dict[str, Tensor]) -> int:
        return len(representations["positive"]) + len(representations.get("negative", ()))
