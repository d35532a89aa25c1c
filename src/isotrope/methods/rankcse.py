"""RankCSE (Liu et al. 2023): two dropout views that rank the batch alike, and as a teacher ranks it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import torch
from torch import Tensor

from isotrope.data.corpus import Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.needed_run import AUTO, NeededRun, NeedsRun, open_needed, reads_rows_of
from isotrope.methods.frame.settings import ClosedShare, OneOf, Positive, Weight, above, at_least
from isotrope.methods.frame.temperature import temperature_of
from isotrope.methods.simcse import DropoutPair, SimCSESettings
from isotrope.objectives import listmle, listnet, ranking_consistency, without_self
from isotrope.objectives.vectors import unit
from isotrope.towers.keeping import Frozen, Tower

LISTMLE, LISTNET = "listmle", "listnet"


@dataclass(frozen=True)
class RankCSESettings(SimCSESettings):
    """SimCSE's, and those of the teachers and of the two ranking terms; ``temperature`` is τ₁."""

    teacher: Annotated[
        str,
        "Encoder whose ranking of the batch is learned: a model folder, a hub id or builtin; "
        "auto: an unsupervised SimCSE of the same start and text, trained first and kept in the cache",
    ] = AUTO
    teacher_steps: Annotated[
        int | None, at_least(1), "Updates of the teacher that auto trains; none: as many as the run itself has"
    ] = None
    teacher_pooling: Annotated[str | None, "Pooling of the teacher; none: its own"] = None
    second_teacher: Annotated[
        str | None, "A second teacher: a model folder, a hub id or builtin; none: one teaches"
    ] = None
    second_teacher_pooling: Annotated[str | None, "Pooling of the second teacher; none: its own"] = None
    teacher_share: Annotated[ClosedShare, "Share α of the first teacher in the cosines of two teachers"] = 0.33
    ranking: Annotated[
        str, OneOf(LISTMLE, LISTNET), "What is learned of a teacher: its order, or its shares of the first place"
    ] = LISTMLE
    ranking_weight: Annotated[Weight, "Weight γ of the teacher's ranking; 0: without a teacher"] = 1.0
    consistency_weight: Annotated[Weight, "Weight β of the consistency of the two views' rankings"] = 1.0
    student_temperature: Annotated[Positive, "Temperature τ₂ of the student's ranking"] = 0.05
    teacher_temperature: Annotated[
        float | None, above(0), "listnet: temperature τ₃ of the teacher's ranking; none: half of student_temperature"
    ] = None

    def rules(self) -> None:
        super().rules()
        if self.second_teacher == AUTO:
            raise InputError("second_teacher is a model folder, a hub id or builtin; auto is for teacher.")

    def asked(self) -> dict[str, tuple[str, str | None]]:
        """Name and pooling of each teacher that is asked."""
        named = {
            "teacher": (self.teacher, self.teacher_pooling),
            "second_teacher": (self.second_teacher, self.second_teacher_pooling),
        }
        return {place: (name, pooling) for place, (name, pooling) in named.items() if name and self.ranking_weight}


class RankCSE(DropoutPair[RankCSESettings], NeedsRun[RankCSESettings]):
    """ℓ = ℓ_InfoNCE + β · JS(P‖Q) + γ · ℓ_rank

    P_i = softmax_j(cos(h_i, h'_j)/τ₁), Q_i = softmax_j(cos(h'_i, h_j)/τ₁), and ℓ_rank compares the list cos(h_i, h'_j)
    with the teacher's t_ij = α · cos₁(i, j) + (1 − α) · cos₂(i, j), both over j ≠ i:

        listmle   −log Π_k exp(s_π(k)/τ₂) / Σ_{l≥k} exp(s_π(l)/τ₂),   π: the teacher's order
        listnet   −Σ_j softmax_j(t/τ₃) log softmax_j(s/τ₂)

    When to use it: plain sentences and an encoder that ranks them better than yours. What goes wrong: a teacher no
    better than the student has little to teach; listmle sums over the list, so its weight grows with the batch.
    Siblings: ``simcse`` is the first term, ``distil`` learns the teacher's vectors, ``dclr`` asks a second encoder
    which negatives are false.
    """

    card = Card(
        name="rankcse",
        title="RankCSE, learning to rank",
        paper="Liu, Liu, Wang, Wang, Wu, Xian, Zhao, Chen, Yan. RankCSE: Unsupervised Sentence Representations "
        "Learning via Learning to Rank. ACL 2023",
        year=2023,
        needs="sentences",
        family="contrastive",
        read_out="cls",
    )
    Settings = RankCSESettings

    @classmethod
    def needed_run(cls, settings: RankCSESettings) -> NeededRun | None:
        if settings.teacher != AUTO or not settings.ranking_weight:
            return None
        return NeededRun("teacher", "simcse", settings.teacher_steps)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        asked = self.settings.asked().items()
        self.teachers = {name: open_needed(name, model, pooling, encoder) for name, (model, pooling) in asked}
        self.sharing = [name for name, one in self.teachers.items() if reads_rows_of(encoder, one, self.max_length)]
        return {**super().towers(encoder), **{name: Frozen(teacher) for name, teacher in self.teachers.items()}}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        views = super().views(records, rng)
        for name, teacher in self.teachers.items():
            shared = name in self.sharing
            views[name] = views["first"] if shared else teacher.tokenize(records.texts(), self.max_length)
        return views

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        with torch.no_grad():
            taught = {name: self.encoder_of(name).embed(batch[name])[0] for name in self.teachers}
        return {**super().represent(batch), **taught}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        first, second = representations["first"], representations["second"]
        terms = super().loss(representations, generator)
        terms["consistency"] = ranking_consistency(first, second, temperature_of(self))
        if self.teachers:
            scores = without_self(unit(first) @ unit(second).T)
            terms["ranking"] = self.rank_loss(scores, without_self(self.taught(representations)))
        return terms

    def taught(self, representations: dict[str, Tensor]) -> Tensor:
        """The teachers' cosines [N, N] of the whole batch."""
        found = [unit(representations[name]) for name in self.teachers]
        cosines = [vectors @ vectors.T for vectors in found]
        share = self.settings.teacher_share
        return cosines[0] if len(cosines) == 1 else share * cosines[0] + (1 - share) * cosines[1]

    def rank_loss(self, scores: Tensor, taught: Tensor) -> Tensor:
        """Over lists [N, N − 1], without the sentence itself."""
        student, teacher = self.settings.student_temperature, self.settings.teacher_temperature
        if self.settings.ranking == LISTMLE:
            return listmle(scores, taught, student)
        return listnet(scores, taught, student, teacher or student / 2)

    def weights(self) -> dict[str, float]:
        return {"consistency": self.settings.consistency_weight, "ranking": self.settings.ranking_weight}
