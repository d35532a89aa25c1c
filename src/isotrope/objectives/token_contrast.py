"""TaCL's objective (Su et al. 2022): token vectors that differ within a sentence."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives.contrast import contrast
from isotrope.objectives.vectors import check_shapes, check_temperature, unit


def token_contrast(
    student: Tensor,
    teacher: Tensor,
    valid: Tensor,
    anchors: Tensor,
    temperature: float | Tensor = 0.01,
    reduction: str = "mean",
) -> Tensor:
    """The student's vector of a masked token must find the teacher's vector of that token in the same sequence.

        ℓ_i = −log  exp(cos(s_i, t_i)/τ) / Σ_j exp(cos(s_i, t_j)/τ)        i: anchors, j: valid tokens of the sequence

    ``student``, ``teacher`` [b, n, d]; ``valid`` [b, n] is False at padding, ``anchors`` [b, n] is True at the masked
    tokens. ``reduction``: "mean" over all anchors of the batch (0 where there is none), or "none": [b, n], 0 elsewhere.

    Use it to keep the tokens of a sequence from becoming alike, together with MLM. Other sequences are not candidates.
    The released code counts padding among the candidates, so that its loss depends on the padding; here it never does.
    ``info_nce`` does the same for whole sentences.
    """
    if reduction not in ("mean", "none"):
        raise InputError(f"reduction is one of mean, none; '{reduction}' was given.")
    check_temperature(temperature)
    check_shapes(student=(student, "b n d"), teacher=(teacher, "b n d"), valid=(valid, "b n"), anchors=(anchors, "b n"))
    asked = anchors & valid
    scores = unit(student) @ unit(teacher).mT / temperature  # [b, n, n]
    scores = scores.masked_fill(~valid.unsqueeze(1), -math.inf)
    scores = scores.masked_fill(~asked.unsqueeze(2), 0.0)  # rows that do not count must stay finite
    own = torch.arange(student.shape[1], device=student.device).expand(student.shape[:2])
    losses = contrast(scores, own, reduction="none").masked_fill(~asked, 0.0)
    return losses if reduction == "none" else losses.sum() / asked.sum().clamp(min=1)
