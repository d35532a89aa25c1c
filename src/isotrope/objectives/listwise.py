"""Listwise ranking: a list of scores must come in the order, or in the proportions, of a teacher's list.

Rows are lists, one for each query. ``without_self`` makes them of a square matrix in which everybody is a query.
"""

from __future__ import annotations

from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives.contrast import contrast
from isotrope.objectives.vectors import check_shapes, check_temperature, mean, wide


def listnet(
    scores: Tensor, teacher: Tensor, temperature: float | Tensor = 0.05, teacher_temperature: float | Tensor = 0.025
) -> Tensor:
    """ListNet (Cao et al. 2007): the probability of coming first must be the teacher's, for each item of the list.

        ℓ_i = − Σ_j q_ij log p_ij,   p = softmax(scores/τ₂),   q = softmax(teacher/τ₃)

    ``scores`` and ``teacher`` [N, L]: similarities of N queries with the L items of each one's list.

    Use it where the teacher's scores are to be trusted, not only their order. The smaller τ₃, the more the top of the
    list counts alone. Its least value is the entropy of q, not 0. ``listmle`` reads the teacher's order and no more.
    """
    check_temperature(temperature)
    check_temperature(teacher_temperature)
    check_shapes(scores=(scores, "N L"), teacher=(teacher, "N L"))
    return contrast(wide(scores) / temperature, (wide(teacher) / teacher_temperature).softmax(dim=-1))


def listmle(scores: Tensor, teacher: Tensor, temperature: float | Tensor = 0.05) -> Tensor:
    """ListMLE (Xia et al. 2008): the likelihood of the teacher's order under the model of Plackett and Luce.

        ℓ_i = − log Π_k  exp(s_π(k)/τ₂) / Σ_{l≥k} exp(s_π(l)/τ₂),   π: the items from the teacher's best to its worst

    ``scores`` and ``teacher`` [N, L]: similarities of N queries with the L items of each one's list.

    Use it where the teacher's order is to be trusted and its scores are not: any rising map of them changes nothing.
    Every place of the list counts alike, the worst ones too, and they are summed: a list of L items that the scores
    know nothing of costs log L!. Equal items of the teacher are taken in the order of the list. The teacher has no
    gradient; ``listnet`` has one.
    """
    check_temperature(temperature)
    check_shapes(scores=(scores, "N L"), teacher=(teacher, "N L"))
    order = teacher.argsort(dim=-1, descending=True, stable=True)
    ordered = wide(scores).gather(-1, order) / temperature
    still_to_come = ordered.flip(-1).logcumsumexp(dim=-1).flip(-1)
    return mean((still_to_come - ordered).sum(dim=-1))


def without_self(similarities: Tensor) -> Tensor:
    """[N, N] → [N, N − 1]: each row without its entry of the diagonal, the others in their order."""
    check_shapes(similarities=(similarities, "N N"))
    count = len(similarities)
    if not count:
        raise InputError("similarities must have at least one row.")
    # Row-major without the first entry, every run of N + 1 ends with one of the diagonal.
    return similarities.flatten()[1:].view(count - 1, count + 1)[:, :-1].reshape(count, count - 1)
