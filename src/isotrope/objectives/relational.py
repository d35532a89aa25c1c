"""Linear relational embedding: the image of a concept must lie nearer to the right concept than to all others."""

from __future__ import annotations

import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives.contrast import contrast
from isotrope.objectives.vectors import check_shapes, wide


def relational(images: Tensor, concepts: Tensor, answers: Tensor, answers_each: Tensor | None = None) -> Tensor:
    """The image R a of a concept must be nearer to the right concept b than to all others.

        L = − Σ_i (1/K_i) log [ exp(−‖R a_i − b_i‖²) / Σ_v exp(−‖R a_i − v‖²) ]  /  Σ_i (1/K_i)

    It is the negative goodness of Paccanaro and Hinton (2001), divided by the number of questions. ``images`` R a
    [N, d], ``concepts`` v [V, d], ``answers`` [N]: which concept b is. ``answers_each`` K [N]: how many right answers
    the question (a, R) has, each of which is a row; without it all are 1.

    Use it for triples (head, relation, tail) over few concepts: all of them are candidates. The right answer stays in
    the denominator. Squared distances, no cosine and no temperature: the scale of the vectors is learned.
    """
    check_shapes(images=(images, "N d"), concepts=(concepts, "V d"), answers=(answers, "N"))
    if answers.dtype.is_floating_point:
        raise InputError("answers are numbers of concepts, so whole numbers.")
    losses = contrast(closeness(images, concepts), answers, reduction="none")
    weights = torch.ones_like(losses) if answers_each is None else 1 / wide(answers_each)
    return (weights * losses).sum() / weights.sum().clamp(min=1e-9)


def closeness(images: Tensor, concepts: Tensor) -> Tensor:
    """−‖R a − v‖² [N, V] without ‖R a‖², which is the same for all concepts."""
    images, concepts = wide(images), wide(concepts)
    return 2 * images @ concepts.T - concepts.pow(2).sum(dim=1)
