"""Distillation (Reimers, Gurevych 2020):

a small encoder learns to give the vectors of a larger one, from plain sentences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.measures.principal import principal_axes
from isotrope.methods.frame.method import Batch, Method, Settings, View
from isotrope.objectives import imitation
from isotrope.towers.keeping import Frozen, Role

SAMPLE = 16_384  # texts that the projection is fitted to


@dataclass(frozen=True)
class DistilSettings(Settings):
    """``teacher``:

    a model folder, a hub id or builtin; several joined by commas teach as one. ``dropout`` None: the model's own.
    """

    teacher: str = "builtin"
    dropout: float | None = 0.0


class Distil(Method):
    """L = mean over sentences of 1 − cos(student(x), P·teacher(x)).

    P keeps the teacher's leading principal directions, as many as the student has dimensions; where both are of one
    width it is not needed. It is orthonormal and not centred, so the student's cosines are the teacher's, up to what P
    leaves out.
    """

    name = "distil"
    title = "Distillation of a sentence encoder"
    paper = "Reimers, Gurevych. Making Monolingual Sentence Embeddings Multilingual using Knowledge Distillation. EMNLP 2020"
    year = 2020
    needs = "sentences"
    Settings = DistilSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if not all(name.strip() for name in settings.teacher.split(",")):
            raise InputError(f"teacher is a model folder, a hub id or builtin; '{settings.teacher}' was given.")
        if settings.dropout is not None and not 0 <= settings.dropout < 1:
            raise InputError(f"dropout must lie between 0 and 1; {settings.dropout} was given.")

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        if self.settings.dropout is not None:
            set_dropout(encoder.backbone, self.settings.dropout)
        names = [name.strip() for name in self.settings.teacher.split(",")]
        self.teachers = [load(name, device=encoder.device) for name in names]
        own = encoder.text_tokenizer.fingerprint()
        self.shares_tokens = [
            teacher.text_tokenizer.fingerprint() == own and not teacher.prompt for teacher in self.teachers
        ]
        towers: dict[str, Role] = {f"teacher_{number}": Frozen(teacher) for number, teacher in enumerate(self.teachers)}
        width = sum(teacher.dimension for teacher in self.teachers)
        if width < encoder.dimension:
            raise InputError(
                f"The teacher's vectors have {width} dimensions, fewer than the student's {encoder.dimension}."
            )
        if width == encoder.dimension:
            return towers
        return {**towers, "projection": Frozen(self._projection(width, encoder))}

    def _projection(self, width: int, encoder: Encoder) -> nn.Linear:
        """The leading right singular vectors of a sample's vectors."""
        projection = nn.Linear(width, encoder.dimension, bias=False, device=encoder.device)
        corpus = self.corpus
        if corpus is None:
            return projection  # its values come from a checkpoint
        rows = np.random.default_rng(0).permutation(len(corpus))[:SAMPLE]
        texts = Records(corpus, rows.tolist()).texts()
        units = [np.asarray(teacher.encode(texts, normalize_embeddings=True)) for teacher in self.teachers]
        moments = torch.from_numpy(np.concatenate(units, axis=1)).double()
        _, directions = principal_axes(moments.T @ moments)
        with torch.no_grad():
            projection.weight.copy_(directions.T[: encoder.dimension])
        return projection

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        student = self.frame(records.tokens())
        views: dict[str, View] = {"student": student}
        for number, teacher in enumerate(self.teachers):
            views[f"teacher_{number}"] = student if self.shares_tokens[number] else teacher.tokenise(records.texts())
        return views

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (student,) = self.encoder.embed(batch["student"])
        with torch.no_grad():
            units = [
                nn.functional.normalize(
                    cast(Encoder, cast(Frozen, self.role[name]).module).embed(batch[name])[0], dim=-1
                )
                for name in (f"teacher_{number}" for number in range(len(self.teachers)))
            ]
            target = torch.cat(units, dim=-1)
            target = self.role["projection"](target) if "projection" in self.role else target
        return {"student": student, "teacher": target}

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        return {"imitation": imitation(representations["student"], representations["teacher"])}
