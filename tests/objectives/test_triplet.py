"""The triplet loss: golden values, its sign, a naive twin; the mining of triples against loops."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import cosine_similarity

from isotrope.objectives import mined_triplets, triplet

# specs/3, section 1.3
U, P, N = torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 2.0]])


def test_golden_values() -> None:
    assert float(triplet(U, P, N)) == pytest.approx(4, abs=1e-6)
    assert float(triplet(U, N, P)) == 0  # a distance taken for a similarity would swap the two


def distance_of(first: torch.Tensor, second: torch.Tensor, distance: str) -> float:
    if distance == "cosine":
        return 1 - float(cosine_similarity(first, second, dim=0))
    return float((first - second).pow(2).sum()) ** 0.5


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
@pytest.mark.parametrize("margin", [0.2, 1.0])
def test_equal_to_the_naive_twin(seed: int, distance: str, margin: float) -> None:
    a, p, n = torch.randn(3, 40, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    losses = [
        max(0.0, distance_of(a[i], p[i], distance) - distance_of(a[i], n[i], distance) + margin) for i in range(40)
    ]
    assert 0 < sum(loss == 0 for loss in losses) < 40
    assert float(triplet(a, p, n, margin, distance)) == pytest.approx(sum(losses) / 40, rel=1e-9)


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_the_margin_is_the_loss_where_positive_and_negative_are_one(distance: str) -> None:
    a, p = torch.randn(2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    assert float(triplet(a, p, p, 0.7, distance)) == pytest.approx(0.7)


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_a_step_down_the_gradient_brings_the_positive_nearer_and_the_negative_farther(distance: str) -> None:
    a, p, n = (
        tensor.requires_grad_()
        for tensor in torch.randn(3, 1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    )
    towards, away = torch.autograd.grad(triplet(a, p, n, 9.0, distance), [p, n])
    with torch.no_grad():
        assert distance_of(a[0], (p - 1e-3 * towards)[0], distance) < distance_of(a[0], p[0], distance)
        assert distance_of(a[0], (n - 1e-3 * away)[0], distance) > distance_of(a[0], n[0], distance)


def test_a_positive_on_its_anchor_has_a_finite_gradient() -> None:
    a = torch.tensor([[1.0, 2.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(triplet(a, a.detach().clone(), N), a)
    assert torch.isfinite(gradient).all()


def test_no_triples_give_zero() -> None:
    empty = torch.empty(0, 3, requires_grad=True)
    loss = triplet(empty, empty, empty)
    loss.backward()
    assert float(loss.detach()) == 0


LABELS = torch.tensor([0, 1, 0, 2, 1, 0, 3, 2])  # 3 has no positive


def naive_mining(
    x: torch.Tensor, labels: list[int], mining: str, margin: float, distance: str
) -> set[tuple[int, int, int]]:
    rows = range(len(x))
    d = [[distance_of(x[i], x[j], distance) for j in rows] for i in rows]
    every = [
        (a, p, n)
        for a in rows
        for p in rows
        for n in rows
        if a != p and labels[a] == labels[p] and labels[a] != labels[n]
    ]
    if mining == "batch-all":
        return set(every)
    chosen = set()
    for a in rows:
        mine = [triple for triple in every if triple[0] == a]
        if mining == "batch-hard" and mine:
            chosen.add(
                (
                    a,
                    max((p for _, p, _ in mine), key=lambda p: d[a][p]),
                    min((n for _, _, n in mine), key=lambda n: d[a][n]),
                )
            )
        if mining == "batch-semi-hard":
            for p in {p for _, p, _ in mine}:
                band = [n for _, q, n in mine if q == p and d[a][p] < d[a][n] < d[a][p] + margin]
                chosen |= {(a, p, min(band, key=lambda n: d[a][n]))} if band else set()
    return chosen


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
@pytest.mark.parametrize("mining", ["batch-all", "batch-hard", "batch-semi-hard"])
def test_mining_is_equal_to_the_naive_twin(mining: str, distance: str, seed: int) -> None:
    x = torch.randn(8, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    found = [tuple(triple) for triple in torch.stack(mined_triplets(x, LABELS, mining, 0.4, distance), dim=1).tolist()]
    expected = naive_mining(x, LABELS.tolist(), mining, 0.4, distance)
    assert len(found) == len(set(found)) > 0
    assert set(found) == expected


def test_mined_triples_feed_the_loss_and_the_hard_ones_are_the_worst() -> None:
    x = torch.randn(8, 3, generator=torch.Generator().manual_seed(0)).half().requires_grad_()
    losses = {}
    for mining in ("batch-all", "batch-hard"):
        a, p, n = mined_triplets(x, LABELS, mining)
        losses[mining] = triplet(x[a], x[p], x[n])
    assert float(losses["batch-hard"].detach()) > float(losses["batch-all"].detach()) > 0
    (gradient,) = torch.autograd.grad(losses["batch-hard"], x)
    assert torch.isfinite(gradient).all()
    assert float(gradient.abs().sum()) > 0


def test_a_negative_at_the_distance_of_the_positive_is_not_semi_hard() -> None:
    x = torch.tensor([[0.0], [1.0], [-1.0], [-1.5]])
    a, p, n = mined_triplets(x, torch.tensor([0, 0, 1, 2]), "batch-semi-hard", margin=1.0)
    assert (a == 0).sum() == 1
    assert (int(p[a == 0]), int(n[a == 0])) == (1, 3)


@pytest.mark.parametrize("labels", [[0, 0, 0, 0], [0, 1, 2, 3]])
@pytest.mark.parametrize("mining", ["batch-all", "batch-hard", "batch-semi-hard"])
def test_a_batch_without_triples_gives_none_and_no_loss(mining: str, labels: list[int]) -> None:
    x = torch.randn(4, 3)
    a, p, n = mined_triplets(x, torch.tensor(labels), mining)
    assert len(a) == len(p) == len(n) == 0
    assert float(triplet(x[a], x[p], x[n])) == 0
