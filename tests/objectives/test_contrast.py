"""The one equation and its two forms: golden values, a naive twin, invariances, half precision."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.errors import InputError
from isotrope.objectives import contrast, info_nce, nt_xent

# Cosines of specs/1, section 1.9: anchors × positives, anchors × hard negatives.
C = torch.tensor([[0.9, 0.2, 0.1], [0.3, 0.8, 0.0], [-0.1, 0.4, 0.7]], dtype=torch.float64)
D = torch.tensor([[0.5, 0.1, 0.0], [0.2, 0.6, 0.1], [0.0, 0.3, 0.4]], dtype=torch.float64)
ROWS = torch.arange(3)


def with_own_weight(alpha: float) -> torch.Tensor:
    weights = torch.ones(3, 6, dtype=torch.float64)
    weights[ROWS, 3 + ROWS] = alpha
    return weights


@pytest.mark.parametrize(("temperature", "expected"), [(0.5, 0.460492), (0.05, 8.40751e-4)])
def test_unsupervised_golden_values(temperature: float, expected: float) -> None:
    assert float(contrast(C / temperature, ROWS)) == pytest.approx(expected, rel=1e-5)


def test_golden_rows() -> None:
    assert contrast(C / 0.5, ROWS, reduction="none").tolist() == pytest.approx([0.370524, 0.450933, 0.560020], abs=1e-6)


@pytest.mark.parametrize(
    ("alpha", "temperature", "expected"),
    [
        (1, 0.5, 0.979987),
        (0.5, 0.5, 0.870446),
        (2, 0.5, 1.168210),
        (1, 0.05, 7.93930e-3),
        (0.5, 0.05, 4.46109e-3),
        (2, 0.05, 1.48138e-2),
    ],
)
def test_supervised_golden_values(alpha: float, temperature: float, expected: float) -> None:
    scores = torch.cat([C, D], dim=1) / temperature
    assert float(contrast(scores, ROWS, with_own_weight(alpha))) == pytest.approx(expected, rel=1e-5)


def test_the_weight_is_not_its_logarithm() -> None:
    raw = torch.cat(
        [C / 0.5, D / 0.5 + torch.eye(3, dtype=torch.float64)], dim=1
    )  # α = 1 added to the logit, the usual mistake
    assert float(contrast(raw, ROWS)) == pytest.approx(1.284264, abs=1e-6)
    assert float(contrast(torch.cat([C, D], dim=1) / 0.5, ROWS, with_own_weight(1.0))) != pytest.approx(
        1.284264, abs=1e-3
    )


@pytest.mark.parametrize(
    ("count", "temperature", "expected"),
    [(4, 1.0, 0.743668), (4, 0.1, 1.36191e-4), (4, 0.07, 1.87462e-6), (8, 1.0, 1.274009)],
)
def test_info_nce_of_orthonormal_rows(count: int, temperature: float, expected: float) -> None:
    rows = torch.eye(count, dtype=torch.float64)
    assert float(info_nce(rows, rows, temperature)) == pytest.approx(expected, rel=1e-5)


def test_nt_xent_golden_values() -> None:
    first, second = torch.tensor([[1.0, 0], [0, 1]]), torch.tensor([[0.6, 0.8], [0.8, -0.6]])
    assert float(nt_xent(first, second, 0.5)) == pytest.approx(2.030190, abs=1e-6)
    assert float(nt_xent(first, second, 0.1)) == pytest.approx(8.063780, abs=1e-5)
    for count, expected in ((2, 0.239545), (4, 0.594438)):
        rows = torch.eye(count)
        assert float(nt_xent(rows, rows, 0.5)) == pytest.approx(expected, abs=1e-6)


def test_collapsed_vectors_give_the_logarithm_of_the_candidates() -> None:
    same = torch.ones(256, 8)
    assert float(nt_xent(same, same)) == pytest.approx(math.log(511), abs=1e-5)
    assert float(info_nce(same, same)) == pytest.approx(math.log(256), abs=1e-5)
    assert float(info_nce(same, same, negatives=same)) == pytest.approx(math.log(512), abs=1e-5)


def naive_info_nce(a: torch.Tensor, c: torch.Tensor, temperature: float, n: torch.Tensor | None, alpha: float) -> float:
    """The formula, letter by letter, in float64."""
    cos = torch.nn.functional.cosine_similarity
    total = 0.0
    for i in range(len(a)):
        bottom = 0.0
        for j in range(len(c)):
            bottom += math.exp(float(cos(a[i], c[j], dim=0)) / temperature)
            if n is not None:
                bottom += (alpha if i == j else 1.0) * math.exp(float(cos(a[i], n[j], dim=0)) / temperature)
        total -= math.log(math.exp(float(cos(a[i], c[i], dim=0)) / temperature) / bottom)
    return total / len(a)


def naive_nt_xent(first: torch.Tensor, second: torch.Tensor, temperature: float) -> float:
    views = torch.cat([first, second])
    count = len(first)
    similarity = torch.nn.functional.cosine_similarity(views[:, None], views[None], dim=-1)
    total = 0.0
    for i in range(2 * count):
        bottom = sum(math.exp(float(similarity[i, k]) / temperature) for k in range(2 * count) if k != i)
        total -= math.log(math.exp(float(similarity[i, (i + count) % (2 * count)]) / temperature) / bottom)
    return total / (2 * count)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(2, 6),
    temperature=st.sampled_from([0.05, 0.1, 1.0]),
    alpha=st.sampled_from([0.5, 1.0, 3.0]),
)
def test_equal_to_the_naive_twin(seed: int, rows: int, temperature: float, alpha: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    a, c, n = torch.randn(3, rows, 5, dtype=torch.float64, generator=generator)
    assert float(info_nce(a, c, temperature)) == pytest.approx(naive_info_nce(a, c, temperature, None, 1), rel=1e-9)
    assert float(info_nce(a, c, temperature, n, alpha)) == pytest.approx(
        naive_info_nce(a, c, temperature, n, alpha), rel=1e-9
    )
    assert float(nt_xent(a, c, temperature)) == pytest.approx(naive_nt_xent(a, c, temperature), rel=1e-9)


def test_soft_targets_agree_with_indices_and_average_over_positives() -> None:
    hard = contrast(C, ROWS, reduction="none")
    assert torch.allclose(contrast(C, torch.eye(3, dtype=torch.float64), reduction="none"), hard)
    half = torch.tensor([[0.5, 0.5, 0.0]], dtype=torch.float64)
    both = contrast(C[:1].repeat(2, 1), torch.tensor([0, 1]), reduction="none")
    assert float(contrast(C[:1], half)) == pytest.approx(float(both.mean()))


def test_weight_zero_and_score_minus_infinity_both_leave_a_candidate_out() -> None:
    weights = torch.ones_like(C)
    weights[:, 2] = 0
    weights[2, 2] = 1
    hidden = C.masked_fill((weights == 0), -math.inf)
    by_weight, by_score = contrast(C, ROWS, weights), contrast(hidden, ROWS)
    soft = contrast(hidden, torch.eye(3, dtype=torch.float64))
    assert float(by_weight) == pytest.approx(float(by_score))
    assert float(by_score) == pytest.approx(float(soft))


def naive_contrast(scores: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """The formula, letter by letter, in float64."""
    scores, weights = scores.double(), weights.double()
    bottom = (weights * scores.exp()).sum(dim=1).log()
    return -(targets.double() * (scores - bottom.unsqueeze(1))).sum(dim=1).mean()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("soft", [False, True])
def test_weights_of_zero_have_the_gradient_of_the_formula(dtype: torch.dtype, soft: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    scores = 4 * torch.randn(5, 8, dtype=dtype, generator=generator)
    weights = torch.rand(5, 8, dtype=dtype, generator=generator)
    weights[:, 1] = 0
    weights[2, :7] = 0  # also the weight of the target, as DCLR prints its denominator
    rows = torch.arange(5)
    targets = torch.rand(5, 8, dtype=dtype, generator=generator).softmax(dim=1) if soft else rows
    one_hot = targets if soft else torch.eye(8, dtype=dtype)[:5]
    leaves = [tensor.clone().requires_grad_() for tensor in (scores, weights)]
    twins = [tensor.clone().requires_grad_() for tensor in (scores, weights)]
    loss, expected = contrast(leaves[0], targets, leaves[1]), naive_contrast(twins[0], one_hot, twins[1])
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-12}
    torch.testing.assert_close(loss.double(), expected, **tolerance)
    for found, right in zip(torch.autograd.grad(loss, leaves), torch.autograd.grad(expected, twins), strict=True):
        torch.testing.assert_close(found, right, **tolerance)
    assert torch.equal(loss.detach(), contrast(scores, targets, weights))  # the usual path


def test_the_gradient_of_a_weight_of_zero_by_hand() -> None:
    """exp(s) / Σ, with a candidate that the score leaves out, and one that would overflow."""
    scores = torch.tensor([[0.0, 1.0, -math.inf, 500.0]], requires_grad=True)
    weights = torch.tensor([[2.0, 0.0, 0.0, 0.0]], requires_grad=True)
    loss = contrast(scores, torch.tensor([0]), weights)
    by_score, by_weight = torch.autograd.grad(loss, [scores, weights])
    assert float(loss.detach()) == pytest.approx(math.log(2))
    assert by_weight[0, :3].tolist() == pytest.approx([0.5, math.e / 2, 0.0], rel=1e-5)
    assert math.isfinite(float(by_weight[0, 3]))
    assert float(by_weight[0, 3]) > 1e37  # as large as float32 holds
    assert by_score.tolist() == [[0.0, 0.0, 0.0, 0.0]]


def test_second_derivatives_of_weights_of_zero() -> None:
    scores = torch.tensor([[0.3, -0.2, 1.0, 0.1]], dtype=torch.float64, requires_grad=True)
    weights = torch.tensor([[1.0, 0.0, 0.5, 0.0]], dtype=torch.float64, requires_grad=True)
    one_hot = torch.tensor([[1.0, 0.0, 0.0, 0.0]], dtype=torch.float64)
    found, right = (
        torch.autograd.functional.hessian(lambda s, w, of=of: of(s, one_hot, w), (scores, weights))
        for of in (contrast, naive_contrast)
    )
    for row, right_row in zip(found, right, strict=True):
        for one, expected in zip(row, right_row, strict=True):
            torch.testing.assert_close(one, expected)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_a_temperature_that_is_not_above_zero_is_refused(temperature: float) -> None:
    with pytest.raises(InputError, match="temperature"):
        info_nce(torch.eye(2), torch.eye(2), temperature)


def test_a_negative_weight_is_refused() -> None:
    with pytest.raises(InputError, match="weight itself"):
        info_nce(torch.eye(2), torch.eye(2), negatives=torch.eye(2), negative_weight=-0.5)
