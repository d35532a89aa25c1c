"""A student's vectors against those a teacher gives for the same texts."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cosine_similarity

from isotrope.errors import InputError


def imitation(student: Tensor, teacher: Tensor) -> Tensor:
    """Mean of 1 − cos(student_i, teacher_i): half the squared distance of unit vectors."""
    if student.shape != teacher.shape:
        raise InputError(f"Student and teacher must be of one shape; {tuple(student.shape)} and {tuple(teacher.shape)} were given.")
    return 1 - cosine_similarity(student.float(), teacher.float(), dim=-1).mean()
