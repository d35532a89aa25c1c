"""Supervised contrast: golden values of both forms, a naive twin, rows without a positive."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cosine_similarity

from isotrope.objectives import nt_xent, supervised_contrast

# specs/3, appendix A
FOUR = torch.tensor([[1, 0], [0.8, 0.6], [0, 1], [-1, 0]], dtype=torch.float64)
FIVE = torch.tensor([[1, 0], [0.8, 0.6], [0, 1], [0.6, 0.8], [-1, 0]], dtype=torch.float64)


@pytest.mark.parametrize("form", ["out", "in"])
@pytest.mark.parametrize(("temperature", "expected"), [(0.1, 1.533147), (0.5, 0.676401), (1.0, 0.780155)])
def test_golden_values_with_one_positive_a_row(temperature: float, expected: float, form: str) -> None:
    assert float(supervised_contrast(FOUR, torch.tensor([0, 0, 1, 1]), temperature, form)) == pytest.approx(
        expected, abs=1e-6
    )


@pytest.mark.parametrize(
    ("temperature", "out", "inside"), [(0.1, 6.774072, 5.564012), (0.5, 2.025307, 1.929156), (1.0, 1.617337, 1.591880)]
)
def test_golden_values_of_the_two_forms(temperature: float, out: float, inside: float) -> None:
    labels = torch.tensor([0, 0, 0, 1, 1])
    assert float(supervised_contrast(FIVE, labels, temperature)) == pytest.approx(out, abs=1e-6)
    assert float(supervised_contrast(FIVE, labels, temperature, "in")) == pytest.approx(inside, abs=1e-6)


@pytest.mark.parametrize(("classes", "rows", "temperature"), [(2, 2, 0.1), (3, 4, 0.5), (5, 2, 1.0)])
def test_perfect_classes_have_a_closed_form(classes: int, rows: int, temperature: float) -> None:
    embeddings = torch.eye(classes, dtype=torch.float64).repeat(rows, 1)
    expected = math.log((rows - 1) + rows * (classes - 1) * math.exp(-1 / temperature))
    assert float(supervised_contrast(embeddings, torch.arange(classes).repeat(rows), temperature)) == pytest.approx(
        expected, rel=1e-9
    )


def naive_supervised(z: torch.Tensor, labels: list[int], temperature: float, form: str) -> float:
    losses = []
    for i in range(len(z)):
        phi = {a: math.exp(float(cosine_similarity(z[i], z[a], dim=0)) / temperature) for a in range(len(z)) if a != i}
        positives = [a for a in phi if labels[a] == labels[i]]
        bottom = sum(phi.values())
        if positives and form == "out":
            losses.append(-sum(math.log(phi[p] / bottom) for p in positives) / len(positives))
        elif positives:
            losses.append(-math.log(sum(phi[p] for p in positives) / len(positives) / bottom))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("form", ["out", "in"])
@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 0, 1], [0, 1, 2, 0, 3, 0], [5, 5, 5, 5, 5, 5]])
def test_equal_to_the_naive_twin(labels: list[int], form: str) -> None:
    z = torch.randn(6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = naive_supervised(z, labels, 0.2, form)
    assert float(supervised_contrast(z, torch.tensor(labels), 0.2, form)) == pytest.approx(expected, rel=1e-10)


def test_two_views_of_unique_labels_are_nt_xent() -> None:
    first, second = torch.randn(2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    embeddings, labels = torch.cat([first, second]), torch.arange(5).repeat(2)
    for form in ("out", "in"):
        assert float(supervised_contrast(embeddings, labels, 0.3, form)) == pytest.approx(
            float(nt_xent(first, second, 0.3)), rel=1e-12
        )


def test_the_inner_form_is_never_above_the_outer() -> None:
    for seed in range(50):
        z = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        labels = torch.tensor([0, 0, 0, 0, 1, 1, 1, 2])
        assert float(supervised_contrast(z, labels, 0.2, "in")) < float(supervised_contrast(z, labels, 0.2, "out"))


def test_renaming_the_labels_changes_nothing() -> None:
    labels = torch.tensor([0, 0, 0, 1, 1])
    assert float(supervised_contrast(FIVE, labels)) == float(supervised_contrast(FIVE, 100 - 7 * labels))


@pytest.mark.parametrize("form", ["out", "in"])
def test_a_row_without_a_positive_is_left_out_of_the_mean_but_stays_a_candidate(form: str) -> None:
    labels = torch.tensor([0, 0, 0, 1, 1, 9])
    stranger = torch.tensor([[0.3, -0.4]], dtype=torch.float64)
    losses = [float(supervised_contrast(torch.cat([FIVE, row]), labels, 0.5, form)) for row in (stranger, -stranger)]
    assert losses[0] != pytest.approx(losses[1], rel=1e-3)
    assert losses[0] == pytest.approx(
        naive_supervised(torch.cat([FIVE, stranger]), labels.tolist(), 0.5, form), rel=1e-10
    )
    assert losses[0] > float(supervised_contrast(FIVE, labels[:5], 0.5, form))  # one more candidate in every row


@pytest.mark.parametrize("form", ["out", "in"])
def test_a_batch_without_any_positive_gives_zero_and_no_gradient(form: str) -> None:
    z = FOUR.clone().requires_grad_()
    loss = supervised_contrast(z, torch.arange(4), form=form)
    loss.backward()
    assert float(loss.detach()) == 0
    assert float(z.grad.abs().sum()) == 0
