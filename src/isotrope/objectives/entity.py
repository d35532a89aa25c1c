"""EASE's entity term (Nishikawa et al. 2022): a sentence must find the entity that it links to."""

from __future__ import annotations

import torch
from torch import Tensor

from isotrope.objectives.contrast import contrast, info_nce
from isotrope.objectives.vectors import check_shapes, check_temperature, unit


def entity_contrast(
    sentences: Tensor,
    entities: Tensor,
    hard_entities: Tensor | None = None,
    temperature: float | Tensor = 0.05,
    *,
    negative_weight: float = 1.0,
    allowed: Tensor | None = None,
) -> Tensor:
    """Sentence i must find entity i among the entities of the batch and their hard negatives.

        ℓ_i = −log  exp(cos(s_i, e_i)/τ) / Σ_j [ exp(cos(s_i, e_j)/τ) + α^{1[i=j]} exp(cos(s_i, e⁻_j)/τ) ]

    ``hard_entities`` [N, d]: another entity of the same type for each sentence. α is ``negative_weight``: 1 in the
    paper, e in the released code. ``allowed``: bool [N, N], or [N, 2N] with hard entities; where it is False, the
    entity is not a candidate of the sentence. The sentence's own entity always is one.

    Use it for sentences with links to a knowledge base, together with a loss between sentences. Entities come in the
    width of the sentences, so already mapped. The released code divides by a temperature of 100 (10 for several
    languages), where this term hardly moves the encoder. Without ``allowed`` it is ``info_nce``.
    """
    check_shapes(sentences=(sentences, "N d"), entities=(entities, "N d"))
    if hard_entities is not None:
        check_shapes(sentences=(sentences, "N d"), hard_entities=(hard_entities, "N d"))
    if allowed is None:
        return info_nce(sentences, entities, temperature, hard_entities, negative_weight)
    check_temperature(temperature)
    candidates = entities if hard_entities is None else torch.cat([entities, hard_entities])
    check_shapes(candidates=(candidates, "M d"), sentences=(sentences, "N d"), allowed=(allowed, "N M"))
    scores = unit(sentences) @ unit(candidates).T / temperature
    own = torch.arange(len(sentences), device=scores.device)
    weights = allowed.to(scores.dtype)
    weights[own, own] = 1.0
    if hard_entities is not None:
        weights[own, len(entities) + own] *= negative_weight
    return contrast(scores, own, weights)
