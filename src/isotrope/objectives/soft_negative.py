"""A soft negative: less like the anchor than the positive is, but by no more than a bounded margin."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import cosine_similarity, relu

from isotrope.errors import InputError
from isotrope.objectives.vectors import check_shapes, wide


def bidirectional_margin(
    anchors: Tensor, positives: Tensor, negatives: Tensor, least: float = 0.1, most: float = 0.3
) -> Tensor:
    """The positive is nearer than the soft negative by ``least`` at least and ``most`` at most.

        L = mean_i [ max(0, Δ_i + α) + max(0, −Δ_i − β) ]     Δ_i = cos(h_i, n_i) − cos(h_i, p_i), α = least, β = most

    All three are [N, d]; row i of each belongs to record i. It is 0 where −β ≤ Δ ≤ −α, and has no gradient there.

    Use it for negatives that share nearly everything with their anchor, such as its negation: a contrast would push
    them as far away as unrelated texts. It compares a record with its own texts alone, so it needs a contrast added to
    it. ``triplet`` with cosine distance is its first half.
    """
    check_shapes(anchors=(anchors, "N d"), positives=(positives, "N d"), negatives=(negatives, "N d"))
    if not 0 <= least <= most:
        raise InputError(f"least must not be negative and at most most; {least} and {most} were given.")
    anchors = wide(anchors)
    gap = cosine_similarity(anchors, wide(negatives)) - cosine_similarity(anchors, wide(positives))
    return (relu(gap + least) + relu(-gap - most)).mean()
