"""Listwise ranking: golden values, naive twins, what of the teacher counts, saturated scores."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives import listmle, listnet, without_self

# specs/1, sections 1.9 and 6.6: cosines of a student and of its teacher; nobody is in the list of its own.
STUDENT = torch.tensor([[0.9, 0.2, 0.1], [0.3, 0.8, 0.0], [-0.1, 0.4, 0.7]], dtype=torch.float64)
TEACHER = torch.tensor([[1.0, 0.9, 0.2], [0.9, 1.0, 0.4], [0.2, 0.4, 1.0]], dtype=torch.float64)


def drawn(seed: int, *shape: int) -> Tensor:
    return 2 * torch.rand(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)) - 1


def naive_listnet(scores: Tensor, teacher: Tensor, temperature: float, teacher_temperature: float) -> float:
    total = 0.0
    for row, wanted in zip(scores.tolist(), teacher.tolist(), strict=True):
        p = [math.exp(score / temperature) for score in row]
        q = [math.exp(score / teacher_temperature) for score in wanted]
        total -= sum(b / sum(q) * math.log(a / sum(p)) for a, b in zip(p, q, strict=True))
    return total / len(scores)


def naive_listmle(scores: Tensor, teacher: Tensor, temperature: float) -> float:
    total = 0.0
    for row, wanted in zip(scores.tolist(), teacher.tolist(), strict=True):
        left = sorted(range(len(row)), key=lambda j: -wanted[j])
        while left:
            total -= math.log(math.exp(row[left[0]] / temperature) / sum(math.exp(row[j] / temperature) for j in left))
            left = left[1:]
    return total / len(scores)


def test_golden_values_without_self() -> None:
    lists = without_self(STUDENT), without_self(TEACHER)
    assert float(listnet(*lists, 0.5, 0.25)) == pytest.approx(0.580634, abs=1e-6)
    assert float(listmle(*lists, 0.5)) == pytest.approx(0.449630, abs=1e-6)
    # With the diagonal in the list, as a known reimplementation of ListMLE has it, the value is another one.
    assert float(listmle(STUDENT, TEACHER, 0.5)) != pytest.approx(0.449630, abs=0.1)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("temperature", [0.05, 1.0])
def test_equal_to_the_naive_twins(seed: int, temperature: float) -> None:
    scores, teacher = drawn(seed, 5, 9), drawn(seed + 100, 5, 9)
    assert float(listnet(scores, teacher, temperature, 0.1)) == pytest.approx(
        naive_listnet(scores, teacher, temperature, 0.1), rel=1e-10
    )
    assert float(listmle(scores, teacher, temperature)) == pytest.approx(
        naive_listmle(scores, teacher, temperature), rel=1e-10
    )


def test_the_order_of_the_teacher_is_all_that_listmle_reads() -> None:
    scores, teacher = drawn(0, 5, 9), drawn(1, 5, 9)
    base = float(listmle(scores, teacher))
    for risen in (teacher.exp(), 7 * teacher - 3, teacher**3):
        assert float(listmle(scores, risen)) == base
    assert float(listmle(scores, -teacher)) != pytest.approx(base, rel=1e-3)
    assert float(listnet(scores, 7 * teacher)) != pytest.approx(float(listnet(scores, teacher)), rel=1e-3)


@pytest.mark.parametrize("loss", [listnet, listmle])
def test_a_list_may_be_shuffled_and_all_its_scores_moved(loss: object) -> None:
    assert callable(loss)
    scores, teacher, order = drawn(0, 5, 9), drawn(1, 5, 9), torch.randperm(9, generator=torch.Generator())
    base = float(loss(scores, teacher))
    assert float(loss(scores[:, order], teacher[:, order])) == pytest.approx(base, rel=1e-12)
    assert float(loss(scores + 0.4, teacher)) == pytest.approx(base, rel=1e-10)


def test_the_least_values() -> None:
    """ListMLE: 0 where the order is right by far, log L! where nothing is known; ListNet: the teacher's entropy."""
    teacher = drawn(2, 4, 6)
    far = teacher.argsort(dim=-1).argsort(dim=-1).double()
    assert float(listmle(far, teacher, 0.01)) == pytest.approx(0.0, abs=1e-10)
    assert float(listmle(torch.zeros_like(far), teacher)) == pytest.approx(math.lgamma(7))
    entropy = torch.distributions.Categorical(logits=teacher / 0.3).entropy().mean()
    scores = teacher.clone().requires_grad_()
    same = listnet(scores, teacher, 0.3, 0.3)
    assert float(same.detach()) == pytest.approx(float(entropy))
    (gradient,) = torch.autograd.grad(same, scores)
    assert float(gradient.abs().max()) < 1e-12


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_the_wrong_order_is_finite_in_half_precision(dtype: torch.dtype) -> None:
    scores = torch.tensor([[-1.0, 0.0, 1.0]], dtype=dtype, requires_grad=True)
    teacher = torch.tensor([[1.0, 0.0, -1.0]], dtype=dtype)
    loss = listmle(scores, teacher, 1e-3)  # 2000 + 1000 + 0: beyond exp in any precision
    assert float(loss.detach()) == pytest.approx(3000.0, rel=1e-3)
    (gradient,) = torch.autograd.grad(loss, scores)
    assert gradient.tolist()[0] == pytest.approx([-1000.0, -1000.0, 2000.0], rel=1e-2)
    assert float(listnet(scores, teacher, 1e-3, 1e-3).detach()) == pytest.approx(2000.0, rel=1e-3)


def test_equal_items_are_taken_in_the_order_of_the_list() -> None:
    scores = torch.tensor([[0.3, 0.1, 0.2]], dtype=torch.float64)
    assert float(listmle(scores, torch.zeros(1, 3))) == float(listmle(scores, torch.tensor([[3.0, 2.0, 1.0]])))


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_without_self_leaves_the_diagonal_out_and_nothing_else(count: int) -> None:
    matrix = drawn(3, count, count).requires_grad_()
    rows = without_self(matrix)
    assert rows.tolist() == [[v for j, v in enumerate(row) if j != i] for i, row in enumerate(matrix.tolist())]
    (gradient,) = torch.autograd.grad(rows.sum(), matrix)
    assert torch.equal(gradient, 1 - torch.eye(count, dtype=torch.float64))


def test_a_list_of_nobody_costs_nothing() -> None:
    empty = without_self(torch.ones(1, 1))
    assert float(listmle(empty, empty)) == float(listnet(empty, empty)) == 0.0


def test_what_does_not_fit_gets_a_sentence() -> None:
    with pytest.raises(InputError, match=r"similarities must be \[N, N\]"):
        without_self(torch.ones(2, 3))
    with pytest.raises(InputError, match="temperature must be above 0"):
        listnet(STUDENT, TEACHER, 0.5, 0.0)
