"""CLINE's objective (Wang et al. 2021): a sentence is nearer to itself with synonyms than to itself with antonyms."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, softplus

from isotrope.errors import InputError
from isotrope.objectives.vectors import check_shapes, wide


def synonym_antonym(original: Tensor, synonym: Tensor, antonym: Tensor, reduction: str = "mean") -> Tensor:
    """A sentence must be nearer to itself with synonyms than to itself with antonyms.

        ℓ_i = −log  exp(o_i·s_i) / (exp(o_i·s_i) + exp(o_i·a_i))  =  softplus(o_i·a_i − o_i·s_i)

    ``reduction``: "mean" over sentences, or "none": [N].

    Use it where small edits that change the meaning must move a vector. One positive, one negative and raw dot
    products: no cosine, no temperature, no other sentence of the batch, so nothing spreads different sentences
    out. ``synonym_antonym_released`` is what the released code computes.
    """
    _check(original, synonym, antonym, reduction)
    wider = wide(original)
    losses = softplus((wider * wide(antonym)).sum(-1) - (wider * wide(synonym)).sum(-1))
    return losses if reduction == "none" else losses.mean()


def synonym_antonym_released(original: Tensor, synonym: Tensor, antonym: Tensor, reduction: str = "mean") -> Tensor:
    """The released code's form of ``synonym_antonym``: two separate binary classifications of the mean product.

        ℓ_i = ½ [ −log σ(o_i·s_i / d) − log(1 − σ(o_i·a_i / d)) ]

    Use it only to reproduce that code. Division by the width d keeps the scores small: after a tanh they lie in
    (−1, 1), and ℓ cannot fall below −log σ(1) = 0.313.
    """
    _check(original, synonym, antonym, reduction)
    wider = wide(original)
    alike, unlike = ((wider * wide(other)).mean(-1) for other in (synonym, antonym))
    yes = binary_cross_entropy_with_logits(alike, torch.ones_like(alike), reduction="none")
    no = binary_cross_entropy_with_logits(unlike, torch.zeros_like(unlike), reduction="none")
    losses = (yes + no) / 2
    return losses if reduction == "none" else losses.mean()


def _check(original: Tensor, synonym: Tensor, antonym: Tensor, reduction: str) -> None:
    if reduction not in ("mean", "none"):
        raise InputError(f"reduction is one of mean, none; '{reduction}' was given.")
    check_shapes(original=(original, "N d"), synonym=(synonym, "N d"), antonym=(antonym, "N d"))
