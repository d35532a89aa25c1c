"""AnglE: the angle score, what is ranked, and which pairs are positives."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from isotrope.errors import InputError
from isotrope.methods.angle import AnglE, angle_score

Build = Callable[..., Any]

X, Y = torch.tensor([[1.0, 2.0, 3.0, 4.0]]), torch.tensor([[2.0, 0.0, 1.0, 1.0]])


@pytest.fixture
def build(built: Build, samples: dict[str, Path]) -> Build:
    """The sample's scores are 0 to 5 in turn."""
    return lambda **settings: built("angle", samples["scored-pairs"], **settings)


def slow_angle(x: list[float], y: list[float]) -> float:
    """The score by complex numbers: Re + Im of Σ z·w̄, z of the first text and w of the second."""
    half = len(x) // 2
    total = sum(complex(x[k], x[half + k]) * complex(y[k], -y[half + k]) for k in range(half))
    return abs(total.real + total.imag) / (math.hypot(*x) * math.hypot(*y))


def slow_contrast(
    first: list[list[float]], second: list[list[float]], positive: list[int], temperature: float
) -> float:
    def cos(x: list[float], y: list[float]) -> float:
        return sum(a * b for a, b in zip(x, y, strict=True)) / (math.hypot(*x) * math.hypot(*y))

    texts, count, losses = first + second, len(first), []
    for i in range(2 * count):
        if positive[i % count]:
            exps = {k: math.exp(cos(texts[i], texts[k]) / temperature) for k in range(2 * count) if k != i}
            losses.append(-math.log(exps[(i + count) % (2 * count)] / sum(exps.values())))
    return sum(losses) / len(losses)


def drawn(count: int = 6, width: int = 8, positive: int = 1) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    first, second = (torch.randn(count, width, generator=generator, dtype=torch.float64) for _ in range(2))
    scores = torch.tensor([2.0, 0.0, 5.0, 5.0, 1.0, 4.0], dtype=torch.float64)[:count]
    return {"first": first, "second": second, "scores": scores, "positive": positive * (scores > 2.5).long()}


def terms(method: Any, found: dict[str, torch.Tensor]) -> dict[str, float]:
    return {name: float(term) for name, term in method.loss(found, torch.Generator()).items()}


def test_defaults_are_the_papers_weights_and_the_librarys_scales() -> None:
    settings: Any = AnglE.Settings()
    assert (settings.cosine_weight, settings.in_batch_weight, settings.angle_weight) == (1.0, 1.0, 1.0)
    assert (settings.cosine_scale, settings.angle_scale, settings.temperature) == (20.0, 20.0, 0.05)
    assert settings.positive_above == 0.5
    assert AnglE.card.read_out == "cls"


def test_golden_values_of_the_angle_score_which_is_not_symmetric() -> None:
    assert float(angle_score(X, X)) == pytest.approx(1.0, abs=1e-6)
    assert float(angle_score(X, Y)) == pytest.approx(0.894427, abs=1e-6)
    assert float(angle_score(Y, X)) == pytest.approx(0.447214, abs=1e-6)


def test_equal_vectors_do_not_have_the_highest_score() -> None:
    x, jx = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, -1.0]])  # J(0, −1) = (1, 0)
    assert float(angle_score(x, -x)) == pytest.approx(1.0)
    assert float(angle_score(x, jx)) == pytest.approx(1.0)
    assert float(angle_score(x, x + jx)) == pytest.approx(2**0.5)


def test_the_angle_score_is_that_of_complex_numbers_whatever_the_lengths() -> None:
    found = drawn()
    expected = [slow_angle(x, y) for x, y in zip(found["first"].tolist(), found["second"].tolist(), strict=True)]
    assert angle_score(found["first"], found["second"]).tolist() == pytest.approx(expected, abs=1e-12)
    assert angle_score(3 * found["first"], 0.1 * found["second"]).tolist() == pytest.approx(expected, abs=1e-12)
    assert torch.autograd.gradcheck(angle_score, [found[name].requires_grad_() for name in ("first", "second")])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("length", [1e-3, 1.0, 1e4])
def test_half_precision_neither_overflows_nor_underflows(dtype: torch.dtype, length: float) -> None:
    """The squares of these lengths are beyond float16 at both ends."""
    first, second = ((length * side).to(dtype).requires_grad_() for side in (X / 5, Y / 5))
    found = angle_score(first, second)
    exact = angle_score(first.detach().double(), second.detach().double())
    assert found.dtype == torch.float32
    assert float(found.detach()) == pytest.approx(float(exact), rel=1e-5)
    assert all(torch.isfinite(gradient).all() for gradient in torch.autograd.grad(found.sum(), [first, second]))


def test_a_vector_of_zeros_does_no_harm() -> None:
    zeros = torch.zeros(1, 4, requires_grad=True)
    angle_score(zeros, Y).sum().backward()
    assert zeros.grad is not None
    assert torch.isfinite(zeros.grad).all()


@pytest.mark.parametrize(("scores", "expected"), [((0.9, 0.3, 0.5), 0.018485), ((0.3, 0.9, 0.5), 12.018485)])
def test_golden_values_of_both_rankings(build: Build, scores: tuple[float, ...], expected: float) -> None:
    """Vectors whose imaginary half is 0 at both sides: the angle score is the cosine."""
    first = torch.tensor([[1.0, 0.0, 0.0, 0.0]] * 3)
    second = torch.tensor([[s, math.sqrt(1 - s * s), 0.0, 0.0] for s in scores])
    labels = torch.tensor([1.0, 0.0, 0.5])
    found = terms(build(), {"first": first, "second": second, "scores": labels, "positive": (labels > 0.5).long()})
    assert found["cosine_ranking"] == pytest.approx(expected, abs=1e-5)
    assert found["angle_ranking"] == pytest.approx(expected, abs=1e-5)


def test_a_naive_loop_for_each_term(build: Build) -> None:
    found = drawn()
    first, second, scores = (found[name].tolist() for name in ("first", "second", "scores"))
    cosines = torch.nn.functional.cosine_similarity(found["first"], found["second"]).tolist()
    angles = [slow_angle(x, y) for x, y in zip(first, second, strict=True)]

    def ranking(values: list[float], scale: float) -> float:
        lower = [(i, j) for i in range(6) for j in range(6) if scores[i] < scores[j]]
        return math.log(1 + sum(math.exp(scale * (values[i] - values[j])) for i, j in lower))

    method = build(cosine_scale=5.0, angle_scale=3.0, temperature=0.2)
    assert terms(method, found) == pytest.approx(
        {
            "cosine_ranking": ranking(cosines, 5.0),
            "angle_ranking": ranking(angles, 3.0),
            "contrastive": slow_contrast(first, second, found["positive"].tolist(), 0.2),
        },
        abs=1e-10,
    )


def test_a_batch_without_positives_has_no_contrast_and_one_of_ties_no_ranking(build: Build) -> None:
    assert terms(build(), drawn(positive=0))["contrastive"] == 0.0
    tied = {**drawn(), "scores": torch.ones(6)}
    assert {name: value for name, value in terms(build(), tied).items() if value == 0.0}.keys() == {
        "cosine_ranking",
        "angle_ranking",
    }


@pytest.mark.parametrize(
    ("share", "positive"), [(0.0, [0, 1, 1, 1, 1, 1]), (0.4, [0, 0, 0, 1, 1, 1]), (0.8, [0, 0, 0, 0, 0, 1])]
)
def test_scores_above_the_share_of_the_scale_are_positives(
    build: Build, batched: Build, share: float, positive: list[int]
) -> None:
    """Scores 0 to 5: 0.4 is the score 2, which is not above itself."""
    batch = batched(build(positive_above=share), range(6))
    assert batch["scores"].values.tolist() == [0, 1, 2, 3, 4, 5]
    assert batch["positive"].values.tolist() == positive


def test_weights_are_those_of_the_terms_and_every_other_text_is_a_candidate(build: Build) -> None:
    method, found = build(cosine_weight=0.0, angle_weight=0.02, in_batch_weight=30.0), drawn()
    assert method.weights() == {"cosine_ranking": 0.0, "angle_ranking": 0.02, "contrastive": 30.0}
    assert method.weights().keys() == terms(method, found).keys()
    assert method.candidates(found) == 11


def test_what_cannot_work_is_refused(build: Build, built: Build, topics: list[str]) -> None:
    with pytest.raises(InputError, match="are all 0, so nothing would be trained"):
        build(cosine_weight=0.0, angle_weight=0.0, in_batch_weight=0.0)
    with pytest.raises(InputError, match="positive_above must lie between 0 and 1"):
        build(positive_above=1.0)
    with pytest.raises(InputError, match="they have 3 dimensions, an odd number"):
        angle_score(torch.ones(2, 3), torch.ones(2, 3))
    with pytest.raises(InputError, match="second must be"):
        angle_score(torch.ones(2, 4), torch.ones(3, 4))
    with pytest.raises(InputError, match="the same score, 3; there is nothing to put in order"):
        built("angle", [{"sentence1": topics[i], "sentence2": topics[i + 1], "score": 3} for i in range(0, 40, 2)])
