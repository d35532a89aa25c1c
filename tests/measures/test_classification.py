"""Measures of classification: golden values, and scikit-learn as a twin."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import f1_score, top_k_accuracy_score

from isotrope.measures.classification import calibration_error, macro_f1, top_accuracy

SCORES = torch.tensor([[3.0, 2.0, 1.0, 0.0], [0.0, 3.0, 2.0, 1.0], [3.0, 1.0, 2.0, 0.0], [3.0, 2.0, 1.0, 0.0]])
LABELS = torch.tensor([0, 2, 2, 0])


def test_golden_values() -> None:
    assert float(top_accuracy(SCORES, LABELS)) == 0.5
    assert float(top_accuracy(SCORES, LABELS, 2)) == 1.0
    assert float(top_accuracy(SCORES, LABELS, 9)) == 1.0  # more than there are classes
    # class 0: 2 hits, 3 guesses, 2 there → 0.8; class 1: guessed once, never there → 0; class 2: no hit → 0; class 3
    # does not count
    assert float(macro_f1(SCORES, LABELS)) == pytest.approx(0.8 / 3)


def test_they_equal_scikit_learn() -> None:
    generator = torch.Generator().manual_seed(1)
    scores, labels = torch.randn(300, 12, generator=generator), torch.randint(0, 12, (300,), generator=generator)
    assert float(macro_f1(scores, labels)) == pytest.approx(
        f1_score(labels, scores.argmax(1), average="macro"), abs=1e-6
    )
    assert float(top_accuracy(scores, labels, 5)) == pytest.approx(
        top_k_accuracy_score(labels, scores.numpy(), k=5), abs=1e-6
    )
    order = torch.randperm(300, generator=generator)
    assert float(macro_f1(scores[order], labels[order])) == pytest.approx(float(macro_f1(scores, labels)), abs=1e-6)


def test_calibration_error_is_that_of_a_naive_loop() -> None:
    generator = torch.Generator().manual_seed(0)
    probabilities = (3 * torch.randn(200, 4, generator=generator, dtype=torch.float64)).softmax(dim=1)
    labels = torch.randint(4, (200,), generator=generator)
    confidence, found = probabilities.max(dim=1)
    expected = 0.0
    for number in range(15):
        low, high = number / 15, (number + 1) / 15
        inside = [i for i in range(200) if low < float(confidence[i]) <= high]
        if inside:
            accuracy = sum(bool(found[i] == labels[i]) for i in inside) / len(inside)
            expected += len(inside) / 200 * abs(accuracy - sum(float(confidence[i]) for i in inside) / len(inside))
    assert float(calibration_error(probabilities, labels)) == pytest.approx(expected, abs=1e-6)


def test_calibration_error_of_the_extremes() -> None:
    sure = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert float(calibration_error(sure, torch.tensor([0, 0]))) == 0.0
    assert float(calibration_error(sure, torch.tensor([1, 1]))) == 1.0
    assert float(calibration_error(sure, torch.tensor([0, 1]))) == 0.5
    assert float(calibration_error(torch.full((2, 2), 0.5), torch.tensor([0, 1]))) == 0.0
