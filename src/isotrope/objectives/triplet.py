"""The triplet loss with a margin (SBERT, FaceNet), and how triples are mined from a batch or from a pool."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives.vectors import check_shapes, mean, unit, wide

DISTANCES = ("euclidean", "cosine", "dot")
MININGS = ("batch-all", "batch-hard", "batch-semi-hard")


def triplet(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, distance: str = "euclidean"
) -> Tensor:
    """The negative must be farther from the anchor than the positive, by the margin.

        ℓ_i = max(0, D(a_i, p_i) − D(a_i, n_i) + margin)

    D is the length of the difference, not its square ("euclidean"), 1 − cos ("cosine": at most 2, so the margin must be
    below 2), or the negative dot product ("dot": longer vectors lower it, so the margin must fit their length).

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
    _check_mining(mining)
    _check_distance(distance)
    check_shapes(embeddings=(embeddings, "N d"), labels=(labels, "N"))
    alike = labels.unsqueeze(1) == labels
    positives = alike & ~torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    distances = _all_distances(embeddings.detach(), embeddings.detach(), distance)
    return _mine(distances, positives, distances.masked_fill(alike, math.inf), mining, margin)


def pooled_triplets(
    anchors: Tensor,
    candidates: Tensor,
    positive: Tensor,
    negatives: Tensor,
    mining: str = "batch-hard",
    margin: float = 1.0,
    distance: str = "euclidean",
) -> Tensor:
    """The triplet loss of anchors that share their candidates: a batch, a queue, a memory bank.

        ℓ_i = mean over the mined n of max(0, D(a_i, c_p(i)) − D(a_i, c_n) + margin)

    ``positive`` [A]: the number of each anchor's own candidate; ``negatives`` [A, C]: which candidates are its
    negatives. ``mined_triplets`` explains the mining; the mean is over the triples. Distances are taken once, as a
    matrix, so that a long pool costs no copies of vectors. An anchor without a mined negative gives no triple.
    """
    _check_pool(anchors, candidates, positive, negatives, mining, distance)
    distances = _all_distances(anchors, candidates, distance)
    a, n = _mine_pool(distances.detach(), positive, negatives, mining, margin)
    return mean((distances[a, positive[a]] - distances[a, n] + margin).clamp(min=0))


def mined_negatives(
    anchors: Tensor,
    candidates: Tensor,
    positive: Tensor,
    negatives: Tensor,
    mining: str = "batch-hard",
    margin: float = 1.0,
    distance: str = "euclidean",
) -> tuple[Tensor, Tensor]:
    """The pairs (anchor, negative) that ``pooled_triplets`` compares, as row numbers, for other losses on them.

    No gradient flows through the choice.
    """
    _check_pool(anchors, candidates, positive, negatives, mining, distance)
    distances = _all_distances(anchors.detach(), candidates.detach(), distance)
    return _mine_pool(distances, positive, negatives, mining, margin)


def _mine_pool(
    distances: Tensor, positive: Tensor, negatives: Tensor, mining: str, margin: float
) -> tuple[Tensor, Tensor]:
    near = distances.gather(1, positive.unsqueeze(1))
    far = distances.masked_fill(~negatives, math.inf)
    a, _, n = _mine(near, torch.ones_like(near, dtype=torch.bool), far, mining, margin)
    return a, n


def _mine(near: Tensor, positives: Tensor, far: Tensor, mining: str, margin: float) -> tuple[Tensor, Tensor, Tensor]:
    """(a, p, n) of distances to positives, ``near`` [A, P] where ``positives`` says so, and to negatives, ``far``
    [A, C], infinite where a candidate is none."""
    negatives = far.isfinite()
    if mining == "batch-all":
        a, p, n = (positives.unsqueeze(2) & negatives.unsqueeze(1)).nonzero(as_tuple=True)
        return a, p, n
    if mining == "batch-hard":
        (a,) = (positives.any(dim=1) & negatives.any(dim=1)).nonzero(as_tuple=True)
        return a, near.masked_fill(~positives, -math.inf)[a].argmax(dim=1), far[a].argmin(dim=1)
    ordered, who = far.sort(dim=1)
    # right=True: the first negative that is farther than the positive, never one at the same distance.
    place = torch.searchsorted(ordered, near, right=True).clamp(max=far.shape[1] - 1)
    farther = ordered.gather(1, place)  # [anchor, positive]
    a, p = (positives & (farther > near) & (farther < near + margin)).nonzero(as_tuple=True)
    return a, p, who.gather(1, place)[a, p]


def _distance(first: Tensor, second: Tensor, distance: str) -> Tensor:
    if distance == "cosine":
        return 1 - (unit(first) * unit(second)).sum(dim=-1)
    if distance == "dot":
        return -(wide(first) * wide(second)).sum(dim=-1)
    return torch.linalg.vector_norm(wide(first) - wide(second), dim=-1)


def _all_distances(first: Tensor, second: Tensor, distance: str) -> Tensor:
    """[rows of the first, rows of the second]."""
    if distance == "cosine":
        return 1 - unit(first) @ unit(second).T
    if distance == "dot":
        return -wide(first) @ wide(second).T
    # The quick way by matrix product loses small distances.
    return torch.cdist(wide(first), wide(second), compute_mode="donot_use_mm_for_euclid_dist")


def _check_pool(
    anchors: Tensor, candidates: Tensor, positive: Tensor, negatives: Tensor, mining: str, distance: str
) -> None:
    _check_mining(mining)
    _check_distance(distance)
    check_shapes(
        anchors=(anchors, "A d"), candidates=(candidates, "C d"), positive=(positive, "A"), negatives=(negatives, "A C")
    )


def _check_mining(mining: str) -> None:
    if mining not in MININGS:
        raise InputError(f"mining is one of {', '.join(MININGS)}; '{mining}' was given.")


def _check_distance(distance: str) -> None:
    if distance not in DISTANCES:
        raise InputError(f"distance is one of {', '.join(DISTANCES)}; '{distance}' was given.")
