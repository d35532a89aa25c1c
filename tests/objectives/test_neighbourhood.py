"""VaSCL's losses: golden values, naive twins, how neighbours are found."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cosine_similarity

from isotrope.errors import InputError
from isotrope.objectives import contrast_with_neighbours, nearest_rows, neighbourhood, nt_xent, virtual_contrast

# specs/1, section 4.7
Z = torch.tensor([[1, 0], [0.6, 0.8], [0, 1]], dtype=torch.float64)
VIRTUAL = torch.tensor([[0.8, 0.6], [0.28, 0.96], [-0.6, 0.8]], dtype=torch.float64)


def test_golden_values() -> None:
    neighbours = nearest_rows(Z, 1)
    assert neighbours.tolist() == [[1], [2], [1]]
    assert float(virtual_contrast(VIRTUAL, Z, neighbours, 0.5)) == pytest.approx(0.628663, abs=1e-6)
    assert float(neighbourhood(Z, VIRTUAL, 1, 0.5)) == pytest.approx(0.915421, abs=1e-6)


def phi(u: torch.Tensor, v: torch.Tensor, temperature: float) -> float:
    return math.exp(float(cosine_similarity(u, v, dim=0)) / temperature)


def naive_nearest(z: torch.Tensor, k: int) -> list[list[int]]:
    return [
        sorted((j for j in range(len(z)) if j != i), key=lambda j, i=i: -float(z[i] @ z[j]))[:k] for i in range(len(z))
    ]


def naive_neighbourhood(z: torch.Tensor, virtual: torch.Tensor, k: int, temperature: float) -> float:
    near, total = naive_nearest(z, k), 0.0
    for i in range(len(z)):
        own = phi(z[i], virtual[i], temperature)
        for anchor in (z[i], virtual[i]):
            others = sum(phi(anchor, z[n], temperature) + phi(anchor, virtual[n], temperature) for n in near[i])
            total -= math.log(own / (own + others))
    return total / (2 * len(z))


def naive_virtual(virtual: torch.Tensor, z: torch.Tensor, near: list[list[int]], temperature: float) -> float:
    total = 0.0
    for i in range(len(z)):
        own = phi(virtual[i], z[i], temperature)
        total -= math.log(own / (own + sum(phi(virtual[i], z[n], temperature) for n in near[i])))
    return total / len(z)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("k", [1, 3, 6])
def test_equal_to_the_naive_twin(seed: int, k: int) -> None:
    z, virtual = torch.randn(2, 7, 5, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    near = nearest_rows(z, k)
    assert near.tolist() == naive_nearest(z, k)
    assert float(neighbourhood(z, virtual, k, 0.2)) == pytest.approx(naive_neighbourhood(z, virtual, k, 0.2), rel=1e-10)
    assert float(virtual_contrast(virtual, z, near, 0.2)) == pytest.approx(
        naive_virtual(virtual, z, near.tolist(), 0.2), rel=1e-10
    )


def test_with_all_others_as_neighbours_it_is_nt_xent() -> None:
    z, virtual = torch.randn(2, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(9))
    assert float(neighbourhood(z, virtual, 5, 0.3)) == pytest.approx(float(nt_xent(z, virtual, 0.3)), rel=1e-12)


def test_neighbours_are_found_by_dot_product_and_never_oneself() -> None:
    long = torch.tensor([[1.0, 0.0], [0.9, 0.1], [5.0, 5.0]])
    assert nearest_rows(long, 1).tolist() == [[2], [2], [0]]  # by cosine, 0 and 1 would be each other's
    assert all(row not in near for row, near in enumerate(nearest_rows(torch.randn(8, 3), 7).tolist()))


def test_neighbours_may_be_those_of_other_vectors() -> None:
    before = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])
    given = contrast_with_neighbours(Z, VIRTUAL, nearest_rows(before, 1), 0.5)
    assert float(given) != pytest.approx(float(neighbourhood(Z, VIRTUAL, 1, 0.5)), rel=1e-3)


def test_the_order_of_a_row_s_neighbours_and_of_the_pair_is_nothing() -> None:
    z, virtual = torch.randn(2, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    near = nearest_rows(z, 3)
    base = float(contrast_with_neighbours(z, virtual, near))
    assert float(contrast_with_neighbours(z, virtual, near.flip(1))) == pytest.approx(base, rel=1e-12)
    assert float(contrast_with_neighbours(virtual, z, near)) == pytest.approx(base, rel=1e-12)
    assert float(virtual_contrast(virtual, z, near.flip(1))) == pytest.approx(
        float(virtual_contrast(virtual, z, near)), rel=1e-12
    )


@pytest.mark.parametrize("k", [0, 3, 16])
def test_more_neighbours_than_others_are_refused(k: int) -> None:
    with pytest.raises(InputError, match=f"k = {k} and 3 rows"):
        neighbourhood(Z, VIRTUAL, k)
