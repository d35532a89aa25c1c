"""Votes of the nearest: against a slow loop, whatever the scale, and never more neighbours than there are."""

from __future__ import annotations

import math

import pytest
import torch

from isotrope.measures import neighbour_votes as module
from isotrope.measures.neighbour_votes import neighbour_votes


def made() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    known, rows = (torch.randn(count, 6, generator=generator, dtype=torch.float64) for count in (50, 9))
    return rows, known, torch.randint(0, 4, (50,), generator=generator)


def test_votes_are_those_of_a_slow_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, known, labels = made()
    monkeypatch.setattr(module, "AT_ONCE", 4)
    votes = neighbour_votes(rows, known, labels, 4, neighbours=7, temperature=0.2)
    for number, row in enumerate(rows):
        cosines = [float(row @ other / row.norm() / other.norm()) for other in known]
        nearest = sorted(range(50), key=lambda place: -cosines[place])[:7]
        scores = [0.0] * 4
        for place in nearest:
            scores[int(labels[place])] += math.exp(cosines[place] / 0.2)
        assert votes[number].tolist() == pytest.approx([score / sum(scores) for score in scores])


def test_scale_says_nothing_and_k_may_be_too_large() -> None:
    rows, known, labels = made()
    plain = neighbour_votes(rows, known, labels, 4, neighbours=5)
    assert torch.allclose(plain, neighbour_votes(7 * rows, 0.1 * known, labels, 4, neighbours=5))
    assert torch.allclose(
        neighbour_votes(rows, known, labels, 4, neighbours=50), neighbour_votes(rows, known, labels, 4, neighbours=500)
    )
    assert (neighbour_votes(known, known, labels, 4, neighbours=1).argmax(dim=1) == labels).all()
