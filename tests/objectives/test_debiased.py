"""DCLR's loss: golden values of the four forms in circulation, a naive twin, the two ways back to SimCSE."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cosine_similarity

from isotrope.objectives import contrast, debiased, info_nce

# specs/1, sections 1.9 and 3.8: cosines of anchors with positives and with one noise vector, and those of the other
# encoder.
C = torch.tensor([[0.9, 0.2, 0.1], [0.3, 0.8, 0.0], [-0.1, 0.4, 0.7]], dtype=torch.float64)
NOISE = torch.tensor([[0.1], [0.0], [-0.2]], dtype=torch.float64)
OTHER = torch.tensor([[1, 0.95, 0.1], [0.95, 1, 0.2], [0.1, 0.2, 1]], dtype=torch.float64)
WEIGHTS = (OTHER < 0.9).double()  # 0 on the diagonal too, where it must not count
ROWS = torch.arange(3)


def with_cosines(cosines: torch.Tensor) -> torch.Tensor:
    """Unit vectors [columns, 4] whose cosines with the first three axes are the columns."""
    rest = (1 - cosines.pow(2).sum(dim=0, keepdim=True)).sqrt()
    return torch.cat([cosines, rest]).T


ANCHORS, POSITIVES, NOISE_VECTORS = torch.eye(3, 4, dtype=torch.float64), with_cosines(C), with_cosines(NOISE)


@pytest.mark.parametrize(("included", "expected"), [(True, 0.442866), (False, -0.633812)])
def test_golden_value(included: bool, expected: float) -> None:
    found = debiased(ANCHORS, POSITIVES, NOISE_VECTORS, WEIGHTS, 0.5, positive_in_denominator=included)
    assert float(found) == pytest.approx(expected, abs=1e-6)
    if included:
        assert float(found) == float(debiased(ANCHORS, POSITIVES, NOISE_VECTORS, WEIGHTS, 0.5))  # the default


def test_the_other_forms_in_circulation_have_other_values() -> None:
    scores = torch.cat([C, NOISE], dim=1) / 0.5
    weights = torch.cat([WEIGHTS, torch.ones(3, 1)], dim=1)
    weights[ROWS, ROWS] = 1
    masked = scores * weights  # as released: the weight multiplies the score
    assert float(contrast(masked, ROWS)) == pytest.approx(0.524765, abs=1e-6)
    shares, right = masked.softmax(dim=1), torch.eye(3, 4, dtype=torch.float64)
    released = -(right * shares.log() + (1 - right) * (1 - shares).log()).mean()
    assert float(released) == pytest.approx(0.241939, abs=1e-6)


def naive_debiased(
    a: torch.Tensor, p: torch.Tensor, noise: torch.Tensor, weights: torch.Tensor, temperature: float, own: float = 1.0
) -> float:
    def phi(u: torch.Tensor, v: torch.Tensor) -> float:
        return math.exp(float(cosine_similarity(u, v, dim=0)) / temperature)

    total = 0.0
    for i in range(len(a)):
        bottom = sum((own if i == j else float(weights[i, j])) * phi(a[i], p[j]) for j in range(len(p)))
        bottom += sum(phi(a[i], n) for n in noise)
        total -= math.log(phi(a[i], p[i]) / bottom)
    return total / len(a)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("included", [True, False])
def test_equal_to_the_naive_twin(seed: int, count: int, included: bool) -> None:
    generator = torch.Generator().manual_seed(seed)
    a, p = torch.randn(2, 5, 4, dtype=torch.float64, generator=generator)
    noise = torch.randn(count, 4, dtype=torch.float64, generator=generator)
    weights = torch.rand(5, 5, dtype=torch.float64, generator=generator).round(decimals=1)
    assert float(debiased(a, p, noise, weights, 0.1, included)) == pytest.approx(
        naive_debiased(a, p, noise, weights, 0.1, float(included)), rel=1e-10
    )


def test_without_noise_and_with_every_weight_one_it_is_simcse() -> None:
    none = NOISE_VECTORS[:0]
    assert float(debiased(ANCHORS, POSITIVES, none, torch.ones(3, 3))) == pytest.approx(
        float(info_nce(ANCHORS, POSITIVES)), rel=1e-12
    )


def test_the_diagonal_is_one_whatever_is_given() -> None:
    expected = float(debiased(ANCHORS, POSITIVES, NOISE_VECTORS, WEIGHTS, 0.5))
    for own in (0.0, 1.0, 5.0):
        given = WEIGHTS.clone().fill_diagonal_(own)
        assert float(debiased(ANCHORS, POSITIVES, NOISE_VECTORS, given, 0.5)) == expected
        assert torch.equal(given.diagonal(), torch.full((3,), own).double())  # the caller's tensor is left alone


def test_weights_may_be_true_and_false() -> None:
    expected = float(debiased(ANCHORS, POSITIVES, NOISE_VECTORS, WEIGHTS, 0.5))
    assert float(debiased(ANCHORS, POSITIVES, NOISE_VECTORS, WEIGHTS.bool(), 0.5)) == expected


def test_a_weight_of_zero_gives_no_gradient_to_its_candidate() -> None:
    a, p = (torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(i)) for i in range(2))
    p.requires_grad_()
    weights = torch.eye(4)  # all others are false negatives
    (gradient,) = torch.autograd.grad(debiased(a, p, torch.empty(0, 3).double(), weights), p)
    assert float(gradient.abs().max()) == pytest.approx(0, abs=1e-12)
    (gradient,) = torch.autograd.grad(debiased(a, p, torch.empty(0, 3).double(), torch.ones(4, 4)), p)
    assert float(gradient.abs().max()) > 1e-3


def test_without_the_positive_an_anchor_without_negatives_is_left_out() -> None:
    a, p = (torch.randn(4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(i)) for i in range(2))
    a.requires_grad_()
    none, weights = torch.empty(0, 3).double(), torch.ones(4, 4)
    weights[2] = 0
    found = debiased(a, p, none, weights, 0.1, positive_in_denominator=False)
    rest = [0, 1, 3]
    scores = torch.nn.functional.normalize(a[rest], dim=1) @ torch.nn.functional.normalize(p, dim=1).T / 0.1
    own = torch.tensor(rest)
    expected = contrast(scores, own, torch.ones(3, 4).double().scatter(1, own.unsqueeze(1), 0.0))
    assert float(found.detach()) == pytest.approx(float(expected.detach()), rel=1e-12)
    (gradient,) = torch.autograd.grad(found, a)
    assert float(gradient[2].abs().max()) == 0
    assert torch.isfinite(gradient).all()
    assert float(debiased(a, p, none, torch.eye(4), positive_in_denominator=False).detach()) == 0


def test_without_the_positive_the_gradient_does_not_fade() -> None:
    """Where the positive is found already, the form with it has next to no gradient left and the other has."""
    p = torch.eye(3, dtype=torch.float64)
    noise = torch.tensor([[0.1, 0.2, 0.9]], dtype=torch.float64)
    lengths = []
    for included in (True, False):
        a = (p + 0.01).requires_grad_()
        (gradient,) = torch.autograd.grad(debiased(a, p, noise, torch.ones(3, 3), 0.05, included), a)
        lengths.append(float(gradient.norm()))
    assert lengths[1] > 10 * lengths[0]
