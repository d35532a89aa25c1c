"""Self-guided contrast (Kim, Yoo, Lee 2021): the layers of a frozen copy are the positive views of a sentence."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives.contrast import contrast, info_nce, nt_xent
from isotrope.objectives.vectors import check_shapes, check_temperature, unit

VARIANTS = ("base", "opt1", "opt2", "opt3")


def self_guided(cls: Tensor, layers: Tensor, temperature: float | Tensor = 0.01, variant: str = "opt3") -> Tensor:
    """The tuned [CLS] c_i must find the pooled layers h_ik of its own sentence; φ(u, v) = exp(cos(u, v)/τ).

        "base":  NT-Xent of c and h: both are anchors, everything else is a candidate
        "opt1":  ℓ_i  = −log φ(c_i, h_i) / [ Σ_j φ(c_i, h_j) + Σ_{j≠i} φ(c_i, c_j) ]
        "opt2":  ℓ_i  = −log φ(c_i, h_i) / Σ_j φ(c_i, h_j)
        "opt3":  ℓ_ik = −log φ(c_i, h_ik) / [ φ(c_i, h_ik) + Σ_{j≠i} Σ_n φ(c_i, h_jn) ]

    ``cls`` [b, d], ``layers`` [b, L, d].

    Use it where there is only a pre-trained model and text: the views cost no edits. Only "opt3" takes several layers:
    each is a positive in a softmax of its own, from which the sentence's other layers are absent. The rest take L = 1,
    one layer drawn at random for each sentence, not a mean of layers. "base" is ``nt_xent`` and "opt2" ``info_nce``.
    """
    if variant not in VARIANTS:
        raise InputError(f"variant is one of {', '.join(VARIANTS)}; '{variant}' was given.")
    check_temperature(temperature)
    check_shapes(cls=(cls, "b d"), layers=(layers, "b L d"))
    if variant == "opt3":
        return _every_layer(unit(cls), unit(layers), temperature)
    if layers.shape[1] != 1:
        raise InputError(
            f"variant '{variant}' compares one layer of each sentence, so layers must be [b, 1, d]; "
            f"it has {layers.shape[1]} layers."
        )
    drawn = layers[:, 0]
    if variant == "base":
        return nt_xent(cls, drawn, temperature)
    return (
        info_nce(cls, drawn, temperature)
        if variant == "opt2"
        else _without_layer_anchors(unit(cls), unit(drawn), temperature)
    )


def _without_layer_anchors(cls: Tensor, drawn: Tensor, temperature: float | Tensor) -> Tensor:
    itself = torch.eye(len(cls), dtype=torch.bool, device=cls.device)
    scores = torch.cat([cls @ drawn.T / temperature, (cls @ cls.T / temperature).masked_fill(itself, -math.inf)], dim=1)
    return contrast(scores, torch.arange(len(cls), device=cls.device))


def _every_layer(cls: Tensor, layers: Tensor, temperature: float | Tensor) -> Tensor:
    batch, depth, _ = layers.shape
    scores = torch.einsum("id,jnd->ijn", cls, layers) / temperature  # [batch, batch, layers]
    same = torch.eye(batch, dtype=torch.bool, device=cls.device)
    own = scores[same]  # [batch, layers]
    # The layers of a sentence share their negatives, which count as one candidate with the weight of all.
    others = torch.logsumexp(scores[~same].view(batch, (batch - 1) * depth), dim=1, keepdim=True)
    pairs = torch.stack([own, others.expand_as(own)], dim=-1).flatten(end_dim=1)
    return contrast(pairs, torch.zeros(len(pairs), dtype=torch.int64, device=cls.device))
