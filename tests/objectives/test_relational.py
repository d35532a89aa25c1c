"""The objective of linear relational embedding."""

from __future__ import annotations

import math

import pytest
import torch

from isotrope.errors import InputError
from isotrope.objectives import contrast, relational, windowed_sampling


def test_a_collapsed_space_costs_the_logarithm_of_the_concepts() -> None:
    images, concepts = torch.ones(4, 3), torch.ones(7, 3)
    assert relational(images, concepts, torch.arange(4)).item() == pytest.approx(math.log(7))


def test_by_hand() -> None:
    """Distances 0 and 1 from the image: log(1 + e⁻¹)."""
    concepts = torch.tensor([[0.0, 0.0], [1.0, 0.0]])
    assert relational(torch.zeros(1, 2), concepts, torch.tensor([0])).item() == pytest.approx(math.log1p(math.exp(-1)))
    assert relational(torch.zeros(1, 2), concepts, torch.tensor([1])).item() == pytest.approx(
        math.log1p(math.exp(-1)) + 1
    )


def test_several_right_answers_are_one_question_with_soft_targets() -> None:
    torch.manual_seed(0)
    images, concepts = torch.randn(2, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
    rows, answers, each = images[[0, 0, 1]], torch.tensor([1, 4, 2]), torch.tensor([2, 2, 1])
    scores = -torch.cdist(images, concepts).pow(2)
    targets = torch.zeros(2, 5, dtype=torch.float64)
    targets[0, [1, 4]], targets[1, 2] = 0.5, 1.0
    assert relational(rows, concepts, answers, each).item() == pytest.approx(contrast(scores, targets).item(), rel=1e-9)


def test_a_rotation_of_everything_changes_nothing() -> None:
    torch.manual_seed(0)
    images, concepts, answers = torch.randn(6, 4), torch.randn(9, 4), torch.arange(6)
    turned, _ = torch.linalg.qr(torch.randn(4, 4))
    assert relational(images @ turned, concepts @ turned, answers).item() == pytest.approx(
        relational(images, concepts, answers).item(), rel=1e-5
    )


def test_goodness_is_never_above_zero_and_half_precision_holds() -> None:
    torch.manual_seed(0)
    images, concepts, answers = torch.randn(6, 4), torch.randn(9, 4), torch.arange(6)
    loss = relational(images, concepts, answers).item()
    assert loss >= 0
    halves = images.bfloat16(), concepts.bfloat16()
    assert relational(*halves, answers).item() == pytest.approx(
        relational(*(half.float() for half in halves), answers).item()
    )
    assert math.isfinite(relational(1e4 * images, 1e4 * concepts, answers).item())


def test_answers_are_whole_numbers() -> None:
    with pytest.raises(InputError, match="whole numbers"):
        relational(torch.ones(2, 3), torch.ones(4, 3), torch.ones(2))


def test_windowed_sampling_of_no_scores_is_log_two_for_every_term() -> None:
    pairs = torch.tensor([[[0.0, 1.0, 0.5], [1.0, 0.0, 1.0], [0.5, 1.0, 0.0]]])
    words, noise = torch.zeros(1, 3, 4), torch.zeros(1, 2, 4)
    assert windowed_sampling(words, words, noise, pairs, torch.ones(1, 3, 2), 5).item() == pytest.approx(
        5 * 6 * math.log(2)
    )
    passed_over = windowed_sampling(words, words, noise, pairs, torch.zeros(1, 3, 2), 5)
    assert passed_over.item() == pytest.approx(5 * math.log(2))
