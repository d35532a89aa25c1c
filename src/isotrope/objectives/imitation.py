"""Distillation: a student's vectors against those that a teacher gives for the same texts."""

from __future__ import annotations

from torch import Tensor

from isotrope.objectives.vectors import check_shapes, mean, unit


def imitation(student: Tensor, teacher: Tensor) -> Tensor:
    """Each vector of the student must point where the teacher's vector points.

        ℓ_i = 1 − cos(s_i, t_i)

    Use it to distil a finished encoder into a smaller one; both need the same width. It is half the squared distance of
    unit vectors. Unlike ``info_nce`` it has no negatives: the teacher alone keeps vectors from collapsing.
    """
    check_shapes(student=(student, "N d"), teacher=(teacher, "N d"))
    return mean(1 - (unit(student) * unit(teacher)).sum(dim=-1))
