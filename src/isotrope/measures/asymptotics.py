"""What the contrastive loss becomes with ever more negatives (Wang, Isola 2020), and why it flattens the spectrum.

    L → −(1/τ) E[f(x)·f(x⁺)] + E_x log E_{x⁻} exp(f(x)·f(x⁻)/τ)          f on the unit sphere

The first term aligns positives, the second spreads everything. Over m vectors h_i, the rows of W, the second one is
bounded from below (SimCSE, section 5, by Jensen's inequality):

    (1/m) Σ_i log[(1/m) Σ_j exp(h_i·h_j/τ)]  ≥  (1/(τm²)) Σ_i Σ_j h_i·h_j  =  Sum(WWᵀ)/(τm²)

Where no entry of WWᵀ is negative, Sum(WWᵀ) ≥ λ_max(WWᵀ) (Merikoski 1984): the loss pushes down the largest eigenvalue.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import normalize

from isotrope.errors import InputError


class AsymptoticTerms(NamedTuple):
    """``alignment`` −(1/τ) E[f·f⁺] and ``uniformity`` E log E exp(f·f⁻/τ); the limit of the loss is their sum."""

    alignment: Tensor
    uniformity: Tensor


class EigenvalueBound(NamedTuple):
    """``largest`` λ_max(WWᵀ), ``similarities`` Sum(WWᵀ), and ``floor`` Sum(WWᵀ)/(τm²), which uniformity cannot pass.

    ``holds``: no entry of WWᵀ is negative, so ``largest`` ≤ ``similarities`` for certain.
    """

    largest: Tensor
    similarities: Tensor
    floor: Tensor
    holds: bool


def asymptotic_terms(x: Tensor, positives: Tensor, temperature: float = 0.05, block: int = 2048) -> AsymptoticTerms:
    """The two terms over ``x`` [m, d] and the positive of each row; the expectation over x⁻ is that over all m rows.

    InfoNCE over n candidates minus log n comes near their sum as n grows. Compare terms at one temperature only. They
    are ``alignment`` and ``uniformity`` with another kernel: (2 − ‖x − x⁺‖²)/2 is the cosine.
    """
    _check(x, temperature)
    if x.shape != positives.shape:
        raise InputError(f"Each row of x has one positive; {list(x.shape)} and {list(positives.shape)} were given.")
    unit, other = normalize(x.double(), dim=-1), normalize(positives.double(), dim=-1)
    spread = [torch.logsumexp(rows @ unit.T / temperature, dim=1) for rows in unit.split(block)]
    alignment = -(unit * other).sum(dim=1).mean() / temperature
    return AsymptoticTerms(alignment, torch.cat(spread).mean() - math.log(len(unit)))


def eigenvalue_bound(x: Tensor, temperature: float = 0.05, block: int = 2048) -> EigenvalueBound:
    """What the uniformity term holds down: the sum of all similarities, and with it the largest eigenvalue.

    Use it to watch a spectrum flatten. ``holds`` is rarely true after training, when cosines are negative too: then the
    sum says nothing about the largest eigenvalue.
    """
    _check(x, temperature)
    unit = normalize(x.double(), dim=-1)
    similarities = unit.sum(dim=0).pow(2).sum()
    largest = torch.linalg.eigvalsh(unit.T @ unit)[-1]
    lowest = min(float((rows @ unit.T).min()) for rows in unit.split(block))
    return EigenvalueBound(largest, similarities, similarities / (temperature * len(unit) ** 2), lowest >= 0)


def _check(x: Tensor, temperature: float) -> None:
    if x.dim() != 2 or not len(x):
        raise InputError(f"x must be [m, d] with at least one row; a tensor of shape {list(x.shape)} was given.")
    if not temperature > 0:
        raise InputError(f"temperature must be above 0; {temperature} was given.")
