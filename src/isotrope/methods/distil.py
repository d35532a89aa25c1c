"""Distillation (Reimers, Gurevych 2020): an encoder learns the vectors of a larger one from plain sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, cast

import numpy as np
import torch
from torch import Tensor, nn

from isotrope.data.batches import Rows
from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.encoders.modes import set_dropout
from isotrope.errors import InputError
from isotrope.measures.principal import principal_axes
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.needed_run import reads_rows_of
from isotrope.methods.frame.settings import DropoutSetting, Positive, Settings, at_least
from isotrope.objectives import contrast, imitation
from isotrope.objectives.vectors import unit
from isotrope.towers.keeping import Frozen, Tower
from isotrope.towers.key_queue import KeyQueue

SAMPLE = 16_384  # texts that the projection is fitted to


@dataclass(frozen=True)
class DistilSettings(Settings):
    """Dropout is off, as the student is to give the teacher's vector exactly."""

    teacher: Annotated[str, "A model folder, a hub id or builtin; several joined by commas teach as one"] = "builtin"
    dropout: DropoutSetting = 0.0
    queue: Annotated[
        int, at_least(0), "The teacher's vectors of so many earlier texts, as ConGen has them; 0: no queue"
    ] = 0
    student_temperature: Annotated[Positive, "Temperature of the student's similarities; with a queue"] = 0.07
    teacher_temperature: Annotated[Positive, "Temperature of the teacher's similarities; with a queue"] = 0.05

    def rules(self) -> None:
        if not all(self.names()):
            raise InputError(f"teacher is a model folder, a hub id or builtin; '{self.teacher}' was given.")

    def names(self) -> list[str]:
        return [name.strip() for name in self.teacher.split(",")]


class Distil(Method[DistilSettings]):
    """L = mean over sentences of 1 − cos(student(x), P·teacher(x)), or with a queue (ConGen)

    L = − Σ_k p_k log q_k,   p = softmax(cos(P·teacher(x), t_k)/τ_T),   q = softmax(cos(student(x), t_k)/τ_S)

    over the teacher's vectors t_k of the batch and of the queue: not the vector is learned but its neighbourhood. P
    keeps the teacher's leading principal directions, as many as the student has dimensions; where both are of one
    width it is not needed. It is orthonormal and not centred, so the student's cosines are the teacher's, up to what P
    leaves out. Any rotation behind P would keep them too; P has the one that brings the targets nearest to what the
    student gives before training, so that a student that starts near its teachers need not turn first.

    When to use it: a good encoder that is too large or too slow, and plain sentences of the domain. What goes wrong:
    the student learns what the teacher says of these sentences and no others; a narrower teacher cannot teach.
    Siblings: ``simcse`` and the other contrastive methods need no teacher, ``tacl`` has one for tokens.
    """

    card = Card(
        name="distil",
        title="Distillation of a sentence encoder",
        paper="Reimers, Gurevych. Making Monolingual Sentence Embeddings Multilingual using Knowledge Distillation. "
        "EMNLP 2020",
        year=2020,
        needs="sentences",
        family="supervised",
    )
    Settings = DistilSettings

    shared_views = ("student",)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.settings.dropout is not None:
            set_dropout(encoder.backbone, self.settings.dropout)
        self.teachers = [load(name, device=encoder.device) for name in self.settings.names()]
        self.shares_rows = [
            reads_rows_of(encoder, teacher, self.max_length) and not teacher.prompt for teacher in self.teachers
        ]
        towers: dict[str, Tower] = {
            f"teacher_{number}": Frozen(teacher) for number, teacher in enumerate(self.teachers)
        }
        width = sum(teacher.dimension for teacher in self.teachers)
        if width < encoder.dimension:
            raise InputError(
                f"The teacher's vectors have {width} dimensions, fewer than the student's {encoder.dimension}."
            )
        if self.settings.queue:
            towers["queue"] = KeyQueue(self.settings.queue, encoder.dimension)
        if width == encoder.dimension:
            return towers
        projection = nn.Linear(width, encoder.dimension, bias=False, device=encoder.device)
        return {**towers, "projection": Frozen(projection)}

    def count(self, rows: Rows) -> None:
        """The projection, fitted to a sample of ``rows``: leading principal directions, turned towards the student."""
        if "projection" not in self.tower or self.corpus is None:
            return
        texts = Records(self.corpus, np.random.default_rng(0).permutation(rows)[:SAMPLE].tolist()).texts()
        taught = torch.cat([units(teacher, texts) for teacher in self.teachers], dim=1)
        _, axes = principal_axes(taught.T @ taught)
        kept = axes[:, : self.encoder.dimension]
        left, _, right = torch.linalg.svd((taught @ kept).T @ units(self.encoder, texts))  # orthogonal Procrustes
        projection = cast(nn.Linear, self.tower["projection"].module)
        with torch.no_grad():
            projection.weight.copy_((kept @ left @ right).T)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        student = self.frame(records.tokens())
        views: dict[str, View] = {"student": student}
        for number, teacher in enumerate(self.teachers):
            views[f"teacher_{number}"] = student if self.shares_rows[number] else teacher.tokenize(records.texts())
        return views

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (student,) = self.encoder.embed(batch["student"])
        with torch.no_grad():
            names = (f"teacher_{number}" for number in range(len(self.teachers)))
            target = torch.cat([unit(self.encoder_of(name).embed(batch[name])[0]) for name in names], dim=-1)
            target = self.tower["projection"](target) if "projection" in self.tower else target
        return {"student": student, "keys": target}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        student, teacher = representations["student"], representations["keys"]
        if not self.settings.queue:
            return {"imitation": imitation(student, teacher)}
        candidates = torch.cat([unit(teacher), self.tower["queue"]()]).T
        wanted = (unit(teacher) @ candidates / self.settings.teacher_temperature).softmax(dim=-1)
        return {"imitation": contrast(unit(student) @ candidates / self.settings.student_temperature, wanted)}


def units(encoder: Encoder, texts: Sequence[str]) -> Tensor:
    """[n, d] in float64."""
    return torch.from_numpy(np.asarray(encoder.encode(list(texts), normalize_embeddings=True))).double()
