"""Negative sampling and NCE: values known in closed form, naive twins, gradients, the optimum of NCE."""

from __future__ import annotations

import math

import pytest
import torch

from isotrope.errors import InputError
from isotrope.objectives import nce, negative_sampling


@pytest.mark.parametrize("k", [1, 5, 20])
def test_scores_of_zero_give_k_plus_one_times_log_two(k: int) -> None:
    loss = negative_sampling(torch.zeros(3, 4), torch.ones(3, 4), torch.ones(3, k, 4))
    assert float(loss) == pytest.approx((k + 1) * math.log(2), rel=1e-6)


def test_unit_vectors_cannot_go_below_the_known_floor() -> None:
    axis = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    assert float(negative_sampling(axis, axis, -axis.unsqueeze(1))) == pytest.approx(0.6265, abs=5e-5)
    assert float(negative_sampling(axis, axis, -axis.unsqueeze(1), 0.05)) < 1e-8


def naive_loss(
    a: torch.Tensor, p: torch.Tensor, n: torch.Tensor, temperature: float, log_kq: torch.Tensor | None = None
) -> float:
    def log_sigmoid(x: float) -> float:
        return -math.log(1 + math.exp(-x))

    total = 0.0
    for i in range(len(a)):
        shift = [0.0] * (1 + n.shape[1]) if log_kq is None else log_kq[i].tolist()
        total -= log_sigmoid(float(a[i] @ p[i]) / temperature - shift[0])
        for j in range(n.shape[1]):
            total -= log_sigmoid(-(float(a[i] @ n[i, j]) / temperature - shift[1 + j]))
    return total / len(a)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_equal_to_the_naive_twin(seed: int, temperature: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    a, p = torch.randn(2, 5, 4, dtype=torch.float64, generator=generator)
    n = torch.randn(5, 3, 4, dtype=torch.float64, generator=generator)
    noise = torch.rand(5, 4, dtype=torch.float64, generator=generator)
    assert float(negative_sampling(a, p, n, temperature)) == pytest.approx(naive_loss(a, p, n, temperature), rel=1e-10)
    expected = naive_loss(a, p, n, temperature, (3 * noise).log())
    assert float(nce(a, p, n, noise.log(), temperature)) == pytest.approx(expected, rel=1e-10)


def test_noise_of_density_one_over_k_makes_nce_negative_sampling() -> None:
    a, p, *n = torch.randn(5, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    n = torch.stack(n, dim=1)
    assert float(nce(a, p, n, -math.log(3))) == pytest.approx(float(negative_sampling(a, p, n)), rel=1e-12)
    assert float(nce(a, p, n, torch.zeros(5, 4))) != pytest.approx(float(negative_sampling(a, p, n)), rel=1e-3)


def test_gradients_of_the_scores_are_those_of_the_formula() -> None:
    # With a = (1) the candidates are the scores.
    a, p = torch.ones(1, 1, dtype=torch.float64), torch.tensor([[0.4]], dtype=torch.float64, requires_grad=True)
    n = torch.tensor([[[-1.0], [2.0]]], dtype=torch.float64, requires_grad=True)
    of_positive, of_negatives = torch.autograd.grad(negative_sampling(a, p, n), [p, n])
    assert float(of_positive) == pytest.approx(float(torch.sigmoid(p.detach()) - 1))
    assert of_negatives.flatten().tolist() == pytest.approx(torch.sigmoid(n.detach()).flatten().tolist())


def test_at_the_log_probabilities_the_expected_gradient_of_nce_is_zero_and_that_of_negative_sampling_is_not() -> None:
    true = torch.tensor([0.5, 0.3, 0.15, 0.05], dtype=torch.float64)
    noise = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    table = (
        true.log().unsqueeze(1).requires_grad_()
    )  # four candidates of width 1; the anchor is (1), so a score is an entry
    a = torch.ones(1, 1, dtype=torch.float64)
    estimated, sampled = torch.zeros((), dtype=torch.float64), torch.zeros((), dtype=torch.float64)
    for x in range(4):
        for y in range(4):
            drawn = a, table[x].unsqueeze(0), table[y].view(1, 1, 1)
            chance = true[x] * noise[y]
            estimated = estimated + chance * nce(*drawn, noise[[x, y]].log())
            sampled = sampled + chance * negative_sampling(*drawn)
    (at_optimum,) = torch.autograd.grad(estimated, table)
    assert at_optimum.flatten().tolist() == pytest.approx([0.0] * 4, abs=1e-12)
    (elsewhere,) = torch.autograd.grad(sampled, table)
    assert float(elsewhere.abs().max()) > 1e-2


def test_log_noise_broadcasts() -> None:
    a, p, n = torch.full((5, 4), 0.1), torch.full((5, 4), 0.2), torch.full((5, 3, 4), 0.3)
    full = float(nce(a, p, n, torch.full((5, 4), -math.log(50))))
    assert float(nce(a, p, n, -math.log(50))) == pytest.approx(full, rel=1e-6)
    assert float(nce(a, p, n, torch.full((4,), -math.log(50)))) == pytest.approx(full, rel=1e-6)


def test_noise_that_does_not_fit_gets_a_sentence() -> None:
    a, p, n = torch.full((5, 4), 0.1), torch.full((5, 4), 0.2), torch.full((5, 3, 4), 0.3)
    with pytest.raises(InputError, match=r"log_noise must be \[N, 1 \+ k\] = \[5, 4\].*\[5, 3\]"):
        nce(a, p, n, torch.zeros(5, 3))
    with pytest.raises(InputError, match="at least one negative"):
        nce(a, p, n[:, :0], 0.0)
    assert float(negative_sampling(a, p, n[:, :0])) == pytest.approx(
        -float(torch.nn.functional.logsigmoid((a * p).sum(1)).mean()), rel=1e-5
    )
