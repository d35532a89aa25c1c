"""EASE's entity term: golden values, a naive twin, the released weight and temperature."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cosine_similarity

from isotrope.objectives import entity_contrast, info_nce

# specs/1, section 5.7
SENTENCES = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
ENTITIES = torch.tensor([[0.8, 0.6], [-0.6, 0.8]], dtype=torch.float64)
HARD = torch.tensor([[0.6, 0.8], [0.28, 0.96]], dtype=torch.float64)


@pytest.mark.parametrize(("weight", "expected"), [(1.0, 1.066328), (math.e, 1.516450)])
def test_golden_values(weight: float, expected: float) -> None:
    loss = entity_contrast(SENTENCES, ENTITIES, HARD, 0.5, negative_weight=weight)
    assert float(loss) == pytest.approx(expected, abs=1e-6)


def test_the_released_temperature_leaves_the_loss_where_it_starts() -> None:
    sentences, entities, hard = torch.randn(3, 8, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    loss = entity_contrast(sentences, entities, hard, 100.0, negative_weight=math.e)
    assert math.log(15 + math.e) == pytest.approx(2.8746, abs=1e-4)
    assert float(loss) == pytest.approx(2.8746, abs=0.01)


def naive_entity(s: torch.Tensor, e: torch.Tensor, hard: torch.Tensor | None, temperature: float) -> float:
    def phi(u: torch.Tensor, v: torch.Tensor) -> float:
        return math.exp(float(cosine_similarity(u, v, dim=0)) / temperature)

    total = 0.0
    for i in range(len(s)):
        bottom = sum(phi(s[i], e[j]) + (0.0 if hard is None else phi(s[i], hard[j])) for j in range(len(e)))
        total -= math.log(phi(s[i], e[i]) / bottom)
    return total / len(s)


@pytest.mark.parametrize("seed", range(5))
def test_equal_to_the_naive_twin(seed: int) -> None:
    s, e, hard = torch.randn(3, 6, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    assert float(entity_contrast(s, e, temperature=0.1)) == pytest.approx(naive_entity(s, e, None, 0.1), rel=1e-10)
    assert float(entity_contrast(s, e, hard, 0.1)) == pytest.approx(naive_entity(s, e, hard, 0.1), rel=1e-10)


def test_sentences_are_the_anchors_and_entities_the_candidates() -> None:
    assert float(entity_contrast(SENTENCES, ENTITIES)) == float(info_nce(SENTENCES, ENTITIES))
    assert float(entity_contrast(SENTENCES, ENTITIES, HARD)) > float(entity_contrast(SENTENCES, ENTITIES))
    s, e = torch.randn(2, 4, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert float(entity_contrast(s, e)) != pytest.approx(float(entity_contrast(e, s)), rel=1e-3)
