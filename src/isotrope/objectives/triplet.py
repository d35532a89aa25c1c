"""The triplet loss with a margin (SBERT, FaceNet), and how triples are mined from a labelled batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives.vectors import check_shapes, mean, unit, wide

DISTANCES = ("euclidean", "cosine")
MININGS = ("batch-all", "batch-hard", "batch-semi-hard")


def triplet(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, distance: str = "euclidean"
) -> Tensor:
    """The negative must be farther from the anchor than the positive, by the margin.

        ℓ_i = max(0, D(a_i, p_i) − D(a_i, n_i) + margin)

    D is the length of the difference, not its square ("euclidean"), or 1 − cos ("cosine": at most 2, so the margin must
    be below 2).

    Use it for triples with a negative of their own, or with ``mined_triplets``. The mean counts the triples that are
    already right, so it fades as training succeeds; no triples at all give 0. ``info_nce`` with ``negatives`` also
    compares with the rest of the batch.
    """
    _check_distance(distance)
    check_shapes(anchor=(anchor, "N d"), positive=(positive, "N d"), negative=(negative, "N d"))
    near, far = _distance(anchor, positive, distance), _distance(anchor, negative, distance)
    return mean((near - far + margin).clamp(min=0))


def mined_triplets(
    embeddings: Tensor, labels: Tensor, mining: str = "batch-hard", margin: float = 1.0, distance: str = "euclidean"
) -> tuple[Tensor, Tensor, Tensor]:
    """The triples of a labelled batch as row numbers (a, p, n), for ``triplet(x[a], x[p], x[n], margin, distance)``.

    - "batch-all": every triple, up to N³ of them; most are easy and give no gradient.
    - "batch-hard": for each anchor its farthest positive and its nearest negative; mislabelled rows dominate.
    - "batch-semi-hard": for each anchor and positive the nearest negative with D⁺ < D⁻ < D⁺ + margin; without one, no
      triple.

    No gradient flows through the choice. ``supervised_contrast`` needs no mining.
    """
    if mining not in MININGS:
        raise InputError(f"mining is one of {', '.join(MININGS)}; '{mining}' was given.")
    _check_distance(distance)
    check_shapes(embeddings=(embeddings, "N d"), labels=(labels, "N"))
    alike = labels.unsqueeze(1) == labels
    positives = alike & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    if mining == "batch-all":
        a, p, n = (positives.unsqueeze(2) & ~alike.unsqueeze(1)).nonzero(as_tuple=True)
        return a, p, n
    distances = _all_distances(embeddings.detach(), distance)
    to_negatives = distances.masked_fill(alike, math.inf)
    if mining == "batch-hard":
        (a,) = (positives.any(dim=1) & ~alike.all(dim=1)).nonzero(as_tuple=True)
        return a, distances.masked_fill(~positives, -math.inf)[a].argmax(dim=1), to_negatives[a].argmin(dim=1)
    ordered, who = to_negatives.sort(dim=1)
    # right=True: the first negative that is farther than the positive, never one at the same distance.
    place = torch.searchsorted(ordered, distances, right=True).clamp(max=len(labels) - 1)
    farther = ordered.gather(1, place)  # [anchor, positive]
    a, p = (positives & (farther > distances) & (farther < distances + margin)).nonzero(as_tuple=True)
    return a, p, who.gather(1, place)[a, p]


def _distance(first: Tensor, second: Tensor, distance: str) -> Tensor:
    if distance == "cosine":
        return 1 - (unit(first) * unit(second)).sum(dim=-1)
    return torch.linalg.vector_norm(wide(first) - wide(second), dim=-1)


def _all_distances(vectors: Tensor, distance: str) -> Tensor:
    if distance == "cosine":
        return 1 - unit(vectors) @ unit(vectors).T
    # The quick way by matrix product loses small distances.
    return torch.cdist(wide(vectors), wide(vectors), compute_mode="donot_use_mm_for_euclid_dist")


def _check_distance(distance: str) -> None:
    if distance not in DISTANCES:
        raise InputError(f"distance is one of {', '.join(DISTANCES)}; '{distance}' was given.")
