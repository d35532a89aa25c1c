"""QuickThoughts' loss: golden value, a naive twin, the diagonal, the ends of the text."""

from __future__ import annotations

import math

import pytest
import torch

from isotrope.errors import InputError
from isotrope.objectives import neighbour_prediction


def test_golden_value() -> None:
    zeros = torch.zeros(4, 3)
    assert float(neighbour_prediction(zeros, zeros)) == pytest.approx(1.098612, abs=1e-6)  # log 3
    assert float(neighbour_prediction(zeros, zeros)) != pytest.approx(
        1.386294, abs=1e-2
    )  # log 4: the sentence itself as a candidate


def naive_prediction(f: torch.Tensor, g: torch.Tensor, window: int, temperature: float) -> float:
    total = 0.0
    for i in range(len(f)):
        scores = {j: float(f[i] @ g[j]) / temperature for j in range(len(g)) if j != i}
        bottom = math.log(sum(math.exp(score) for score in scores.values()))
        near = [j for j in scores if abs(i - j) <= window]
        total -= sum(scores[j] - bottom for j in near) / len(near)
    return total / len(f)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("window", [1, 2, 9])
@pytest.mark.parametrize("temperature", [1.0, 0.3])
def test_equal_to_the_naive_twin(seed: int, window: int, temperature: float) -> None:
    f, g = torch.randn(2, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    expected = naive_prediction(f, g, window, temperature)
    assert float(neighbour_prediction(f, g, window, temperature)) == pytest.approx(expected, rel=1e-10)


def test_a_text_read_backwards_has_the_same_loss_and_a_shuffled_one_has_not() -> None:
    f, g = torch.randn(2, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(5))
    base = float(neighbour_prediction(f, g))
    assert float(neighbour_prediction(f.flip(0), g.flip(0))) == pytest.approx(base, rel=1e-12)
    order = torch.tensor([3, 0, 5, 1, 4, 2])
    assert float(neighbour_prediction(f[order], g[order])) != pytest.approx(base, rel=1e-3)


def test_the_diagonal_gets_no_gradient() -> None:
    # One-hot rows make the score matrix itself the second argument.
    scores = torch.randn(5, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(6)).requires_grad_()
    (gradient,) = torch.autograd.grad(neighbour_prediction(torch.eye(5, dtype=torch.float64), scores.T), scores)
    assert gradient.diagonal().tolist() == [0.0] * 5
    assert int((gradient != 0).sum()) == 20
    assert gradient.sum(dim=1).tolist() == pytest.approx(
        [0.0] * 5, abs=1e-12
    )  # a constant added to a row changes nothing


def test_two_sentences_have_only_each_other() -> None:
    f, g = torch.randn(2, 2, 4)
    assert float(neighbour_prediction(f, g)) == 0


@pytest.mark.parametrize(("rows", "window", "named"), [(1, 1, "at least 2 consecutive rows"), (4, 0, "window")])
def test_a_text_without_neighbours_is_refused(rows: int, window: int, named: str) -> None:
    with pytest.raises(InputError, match=named):
        neighbour_prediction(torch.zeros(rows, 3), torch.zeros(rows, 3), window)


def test_rows_of_two_texts_are_no_neighbours_and_a_row_alone_is_only_a_candidate() -> None:
    f, g = torch.randn(2, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(7))
    places = torch.tensor([0, 1, 5, 9, 10, 11])  # two sentences, one alone, three
    near = {0: [1], 1: [0], 3: [4], 4: [3, 5], 5: [4]}
    total = 0.0
    for i, neighbours in near.items():
        scores = {k: float(f[i] @ g[k]) for k in range(6) if k != i}
        total -= sum(scores[j] for j in neighbours) / len(neighbours) - math.log(sum(map(math.exp, scores.values())))
    assert float(neighbour_prediction(f, g, places=places)) == pytest.approx(total / 5, rel=1e-10)
    order = torch.tensor([3, 0, 5, 1, 4, 2])  # the places count, not the order
    assert float(neighbour_prediction(f[order], g[order], places=places[order])) == pytest.approx(total / 5, rel=1e-10)
    assert float(neighbour_prediction(f, g, places=torch.arange(6))) == float(neighbour_prediction(f, g))


def test_nobody_has_a_neighbour() -> None:
    f = torch.randn(3, 4, requires_grad=True)
    loss = neighbour_prediction(f, f.detach(), places=torch.tensor([0, 5, 9]))
    (gradient,) = torch.autograd.grad(loss, f)
    assert float(loss.detach()) == 0
    assert gradient.abs().sum() == 0


def test_as_many_places_as_rows() -> None:
    with pytest.raises(InputError, match="places must be"):
        neighbour_prediction(torch.zeros(3, 2), torch.zeros(3, 2), places=torch.arange(4))
