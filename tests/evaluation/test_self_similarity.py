"""Self-similarity of tokens: by hand, and against a loop."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.self_similarity import cosines_of_pairs, self_similarity


def test_by_hand() -> None:
    every = torch.ones(1, 3)
    assert cosines_of_pairs(torch.eye(3).unsqueeze(0), every) == (pytest.approx(0, abs=1e-12), 3)
    assert cosines_of_pairs(torch.full((1, 3, 4), 2.0), every) == (pytest.approx(3), 3)
    pair = torch.tensor([[[1.0, 0.0], [3.0, 4.0], [9.0, 9.0]]])
    assert cosines_of_pairs(pair, torch.tensor([[1, 1, 0]])) == (pytest.approx(0.6), 1)


def test_every_pair_counts_once_whatever_the_batch(tiny: Path) -> None:
    encoder = isotrope.load(tiny)
    texts = ["the chef bakes", "the sailor steers the boat number 7 across the windy bay with anchor and mast", "salt"]
    totals, pairs = torch.zeros(2, dtype=torch.float64), 0
    for text in texts:
        layers = encoder.eval().layers(encoder.tokenise([text]))[1:]
        for number, states in enumerate(layers):
            units = torch.nn.functional.normalize(states[0].double(), dim=-1)
            totals[number] += torch.triu(units @ units.T, diagonal=1).sum().detach()
        count = layers[0].shape[1]
        pairs += count * (count - 1) // 2
    for budget in (8, 4096):
        assert self_similarity(encoder, texts, budget) == pytest.approx((totals / pairs).tolist(), abs=1e-6)


def test_no_text_is_refused(tiny: Path) -> None:
    with pytest.raises(InputError, match="at least one text"):
        self_similarity(isotrope.load(tiny), [])
