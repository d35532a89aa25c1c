"""Self-guided contrast: golden values of the four variants, naive twins, what falls together."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cosine_similarity

from isotrope.errors import InputError
from isotrope.objectives import info_nce, self_guided

# specs/1, section 2.8
CLS = torch.tensor([[1, 0], [0.6, 0.8]], dtype=torch.float64)
LAYERS = torch.tensor([[[0.8, 0.6], [0.96, 0.28]], [[-0.6, 0.8], [0.28, 0.96]]], dtype=torch.float64)


@pytest.mark.parametrize(("variant", "expected"), [("base", 0.991946), ("opt1", 1.232310), ("opt2", 0.823745)])
def test_golden_values_with_one_layer(variant: str, expected: float) -> None:
    assert float(self_guided(CLS, LAYERS[:, :1], 0.5, variant)) == pytest.approx(expected, abs=1e-6)


def test_golden_value_with_every_layer() -> None:
    assert float(self_guided(CLS, LAYERS, 0.5)) == pytest.approx(0.921917, abs=1e-6)


def naive_self_guided(c: torch.Tensor, h: torch.Tensor, temperature: float, variant: str) -> float:
    def phi(u: torch.Tensor, v: torch.Tensor) -> float:
        return math.exp(float(cosine_similarity(u, v, dim=0)) / temperature)

    count, depth = h.shape[:2]
    losses = []
    for i in range(count):
        others = [j for j in range(count) if j != i]
        if variant == "opt3":
            negatives = sum(phi(c[i], h[j, n]) for j in others for n in range(depth))
            losses += [-math.log(phi(c[i], h[i, n]) / (phi(c[i], h[i, n]) + negatives)) for n in range(depth)]
            continue
        across = sum(phi(c[i], h[j, 0]) for j in range(count))
        among = 0.0 if variant == "opt2" else sum(phi(c[i], c[j]) for j in others)
        losses.append(-math.log(phi(c[i], h[i, 0]) / (across + among)))
        if variant == "base":
            back = sum(phi(h[i, 0], c[j]) for j in range(count)) + sum(phi(h[i, 0], h[j, 0]) for j in others)
            losses.append(-math.log(phi(h[i, 0], c[i]) / back))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("variant", "depth"), [("base", 1), ("opt1", 1), ("opt2", 1), ("opt3", 1), ("opt3", 4)])
def test_equal_to_the_naive_twin(variant: str, depth: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    c = torch.randn(5, 6, dtype=torch.float64, generator=generator)
    h = torch.randn(5, depth, 6, dtype=torch.float64, generator=generator)
    assert float(self_guided(c, h, 0.2, variant)) == pytest.approx(naive_self_guided(c, h, 0.2, variant), rel=1e-10)


def test_with_one_layer_opt3_is_opt2_and_opt2_is_info_nce() -> None:
    one = LAYERS[:, :1]
    assert float(self_guided(CLS, one, 0.5, "opt3")) == pytest.approx(
        float(self_guided(CLS, one, 0.5, "opt2")), rel=1e-12
    )
    assert float(self_guided(CLS, one, 0.5, "opt2")) == float(info_nce(CLS, one[:, 0], 0.5))


def test_the_order_of_the_layers_is_nothing_and_their_mean_is_something_else() -> None:
    base = float(self_guided(CLS, LAYERS, 0.5))
    assert float(self_guided(CLS, LAYERS.flip(1), 0.5)) == pytest.approx(base, rel=1e-12)
    assert float(self_guided(CLS, LAYERS.mean(dim=1, keepdim=True), 0.5)) != pytest.approx(base, rel=1e-3)


def test_the_other_layers_of_a_sentence_do_not_repel_it() -> None:
    # One sentence alone has no negatives, however many layers it has.
    c, h = CLS[:1].clone().requires_grad_(), LAYERS[:1].clone().requires_grad_()
    loss = self_guided(c, h, 0.5)
    gradients = torch.autograd.grad(loss, [c, h])
    assert float(loss.detach()) == pytest.approx(0, abs=1e-12)
    assert all(float(gradient.abs().max()) == pytest.approx(0, abs=1e-12) for gradient in gradients)


@pytest.mark.parametrize("variant", ["base", "opt1", "opt2"])
def test_several_layers_are_refused_where_one_is_meant(variant: str) -> None:
    with pytest.raises(InputError, match=f"'{variant}' compares one layer of each sentence.* 2 layers"):
        self_guided(CLS, LAYERS, variant=variant)
