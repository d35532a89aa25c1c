"""Token contrast: golden values, a naive twin, padding, nothing asked."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from isotrope.errors import InputError
from isotrope.objectives import token_contrast

COSINES = torch.tensor([[0.9, 0.1, 0.2], [0.3, 0.8, 0.0], [0.5, 0.4, 0.7]], dtype=torch.float64)  # specs/2, section 5.8


def with_cosines(cosines: Tensor) -> tuple[Tensor, Tensor]:
    """A student and a teacher whose tokens have these cosines:

    the teacher's are axes, the student's are made to fit.
    """
    rest = (1 - cosines.square().sum(1)).clamp(min=0).sqrt()
    count = len(cosines)
    student = torch.cat([cosines, torch.diag(rest)], dim=1)
    teacher = torch.cat([torch.eye(count), torch.zeros(count, count)], dim=1).double()
    return student.unsqueeze(0), teacher.unsqueeze(0)


ALL = torch.ones(1, 3, dtype=torch.bool)
OUTER = torch.tensor([[True, False, True]])


@pytest.mark.parametrize(
    ("temperature", "rows", "outer"),
    [
        (1.0, (0.665732, 0.720694, 0.939831), 0.802781),
        (0.1, (0.001247, 0.007049, 0.169846), 0.085546),
        (0.01, (0, 0, 0), 0),
    ],
)
def test_golden_values(temperature: float, rows: tuple[float, ...], outer: float) -> None:
    student, teacher = with_cosines(COSINES)
    losses = token_contrast(student, teacher, ALL, ALL, temperature, reduction="none")[0]
    assert losses.tolist() == pytest.approx(rows, abs=1e-6)
    assert float(token_contrast(student, teacher, ALL, ALL, temperature)) == pytest.approx(sum(rows) / 3, abs=1e-6)
    assert float(token_contrast(student, teacher, ALL, OUTER, temperature)) == pytest.approx(outer, abs=1e-6)


def test_the_teacher_itself_with_orthogonal_tokens() -> None:
    tokens = torch.eye(5).double().unsqueeze(0)
    every = torch.ones(1, 5, dtype=torch.bool)
    expected = -math.log(math.exp(2) / (math.exp(2) + 4))
    assert float(token_contrast(tokens, tokens, every, every, 0.5)) == pytest.approx(expected, rel=1e-10)


def drawn(seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    student, teacher = (torch.randn(4, 6, 5, generator=generator, dtype=torch.float64) for _ in range(2))
    valid = torch.arange(6) < torch.tensor([[6], [3], [5], [1]])
    return student, teacher, valid, torch.rand(4, 6, generator=generator) < 0.5


@pytest.mark.parametrize("seed", range(3))
def test_equal_to_the_naive_twin(seed: int) -> None:
    student, teacher, valid, anchors = drawn(seed)
    losses = []
    for b in range(4):
        for i in range(6):
            if anchors[b, i] and valid[b, i]:
                scores = [
                    float(torch.cosine_similarity(student[b, i], teacher[b, j], dim=0)) / 0.2
                    for j in range(6)
                    if valid[b, j]
                ]
                losses.append(math.log(sum(map(math.exp, scores))) - scores[i])
    assert float(token_contrast(student, teacher, valid, anchors, 0.2)) == pytest.approx(
        sum(losses) / len(losses), rel=1e-10
    )


def test_tokens_that_are_not_asked_for_and_padding_change_nothing() -> None:
    student, teacher, valid, anchors = drawn()
    base = float(token_contrast(student, teacher, valid, anchors, 0.2))
    noise = torch.randn_like(student)
    unasked, padding = ~(anchors & valid).unsqueeze(2), ~valid.unsqueeze(2)
    assert float(token_contrast(student + noise * unasked, teacher, valid, anchors, 0.2)) == base
    assert float(token_contrast(student, teacher + noise * padding, valid, anchors, 0.2)) == base
    wider = [torch.cat([part, torch.ones(4, 3, 5)], dim=1) for part in (student, teacher)]
    nothing = torch.zeros(4, 3, dtype=torch.bool)
    longer = [torch.cat([part, nothing], dim=1) for part in (valid, anchors)]
    assert float(token_contrast(*wider, *longer, 0.2)) == pytest.approx(base, rel=1e-12)
    counted = torch.cat([valid, ~nothing], dim=1)  # as the released code does
    assert float(token_contrast(*wider, counted, longer[1], 0.2)) > base + 1e-3


@pytest.mark.parametrize("stands", [True, False])
def test_nothing_asked_is_zero_without_a_gradient(stands: bool) -> None:
    student = torch.randn(2, 3, 4, requires_grad=True)
    valid = torch.full((2, 3), stands)
    loss = token_contrast(student, torch.randn(2, 3, 4), valid, torch.zeros(2, 3, dtype=torch.bool))
    loss.backward()
    assert float(loss.detach()) == 0
    assert student.grad is not None
    assert not student.grad.any()


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(InputError, match="one of mean, none"):
        token_contrast(*drawn(), reduction="sum")
