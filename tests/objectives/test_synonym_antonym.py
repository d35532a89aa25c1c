"""CLINE's contrast: the golden values of specs/2 §3, and the laws it states."""

from __future__ import annotations

import math

import pytest
import torch

from isotrope.errors import InputError
from isotrope.objectives import synonym_antonym, synonym_antonym_released

ORIGINAL, SYNONYM, ANTONYM = (
    torch.tensor([row], dtype=torch.float64) for row in ([1, 2, 0, -1], [1, 1, 0.5, 0], [-1, 1, 0, 1])
)


def test_golden_values() -> None:
    assert synonym_antonym(ORIGINAL, SYNONYM, ANTONYM).item() == pytest.approx(math.log1p(math.exp(-3)), abs=1e-12)
    assert synonym_antonym(ORIGINAL, SYNONYM, ANTONYM).item() == pytest.approx(0.048587, abs=1e-6)
    assert synonym_antonym_released(ORIGINAL, SYNONYM, ANTONYM).item() == pytest.approx(0.540009, abs=1e-6)


def test_equal_sentences_give_log_2_and_saturated_ones_stay_finite() -> None:
    assert synonym_antonym(ORIGINAL, SYNONYM, SYNONYM).item() == pytest.approx(math.log(2))
    assert synonym_antonym(1e4 * ORIGINAL, SYNONYM, ANTONYM).item() == 0
    assert synonym_antonym(1e4 * ORIGINAL, ANTONYM, SYNONYM).item() == pytest.approx(3e4)


def test_other_sentences_do_not_matter() -> None:
    first, second, third = (torch.randn(5, 4, generator=torch.Generator().manual_seed(seed)) for seed in range(3))
    for loss in (synonym_antonym, synonym_antonym_released):
        each = [loss(first[i : i + 1], second[i : i + 1], third[i : i + 1]).item() for i in range(5)]
        assert loss(first, second, third, reduction="none").tolist() == pytest.approx(each, rel=1e-6)
        assert loss(first, second, third).item() == pytest.approx(sum(each) / 5, rel=1e-6)


def test_swapping_turns_the_gradient_and_all_three_learn() -> None:
    """Where both are equally near, exactly; elsewhere the sign of what pulls along their difference."""
    given = [tensor.clone().requires_grad_() for tensor in (ORIGINAL, SYNONYM, ANTONYM)]
    synonym_antonym(*given).backward()
    assert all(float(tensor.grad.abs().sum()) > 0 for tensor in given)  # type: ignore[union-attr]
    swapped = ORIGINAL.clone().requires_grad_()
    synonym_antonym(swapped, ANTONYM, SYNONYM).backward()
    along = SYNONYM - ANTONYM
    assert float((given[0].grad * along).sum()) < 0 < float((swapped.grad * along).sum())  # type: ignore[operator]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InputError, match="antonym must be"):
        synonym_antonym(ORIGINAL, SYNONYM, ANTONYM[:, :2])
    with pytest.raises(InputError, match="reduction"):
        synonym_antonym(ORIGINAL, SYNONYM, ANTONYM, reduction="sum")
