"""A student's vectors against those a teacher gives for the same texts."""

from __future__ import annotations

from torch import Tensor

from isotrope.objectives.vectors import check_shapes, mean, unit


def imitation(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean of 1 − cos(student_i, teacher_i): half the squared distance of unit vectors."""
    check_shapes(student=(student, "N d"), teacher=(teacher, "N d"))
    return mean(1 - (unit(student) * unit(teacher)).sum(dim=-1))
