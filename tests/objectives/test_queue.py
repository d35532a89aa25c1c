"""MoCo's loss: golden values, a naive twin, what is and what is not a candidate."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn.functional import cosine_similarity

from isotrope.objectives import queue_nce

# specs/2, section 2.9
QUERIES = torch.tensor([[1.0, 0.0], [0.6, 0.8]], dtype=torch.float64)
KEYS = torch.tensor([[0.8, 0.6], [0.0, 1.0]], dtype=torch.float64)
QUEUE = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], dtype=torch.float64)


@pytest.mark.parametrize(("temperature", "expected"), [(0.07, 1.817223), (0.2, 1.090294), (1.0, 1.081280)])
def test_golden_values(temperature: float, expected: float) -> None:
    assert float(queue_nce(QUERIES, KEYS, QUEUE, temperature)) == pytest.approx(expected, abs=1e-6)


def test_golden_rows() -> None:
    rows = [float(queue_nce(QUERIES[i : i + 1], KEYS[i : i + 1], QUEUE)) for i in range(2)]
    assert rows == pytest.approx([2.912987, 0.721459], abs=1e-6)


@pytest.mark.parametrize(("size", "expected"), [(65536, 11.090370), (4096, 8.318010)])
def test_collapsed_vectors_give_the_logarithm_of_the_candidates(size: int, expected: float) -> None:
    assert float(queue_nce(torch.ones(2, 3), torch.ones(2, 3), torch.ones(size, 3))) == pytest.approx(
        expected, abs=1e-5
    )


def naive_queue_nce(queries: torch.Tensor, keys: torch.Tensor, queue: torch.Tensor, temperature: float) -> float:
    total = 0.0
    for query, key in zip(queries, keys, strict=True):
        own = math.exp(float(cosine_similarity(query, key, dim=0)) / temperature)
        bottom = own + sum(math.exp(float(cosine_similarity(query, old, dim=0)) / temperature) for old in queue)
        total -= math.log(own / bottom)
    return total / len(queries)


@pytest.mark.parametrize("seed", range(5))
def test_equal_to_the_naive_twin(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    queries, keys = torch.randn(2, 4, 5, dtype=torch.float64, generator=generator)
    queue = torch.randn(7, 5, dtype=torch.float64, generator=generator)
    assert float(queue_nce(queries, keys, queue, 0.1)) == pytest.approx(
        naive_queue_nce(queries, keys, queue, 0.1), rel=1e-10
    )


def test_the_keys_of_others_are_no_candidates() -> None:
    def of_the_first(keys: torch.Tensor) -> float:
        rows = [queue_nce(QUERIES[i : i + 1], keys[i : i + 1], QUEUE) for i in range(2)]
        return 2 * float(queue_nce(QUERIES, keys, QUEUE)) - float(rows[1])

    elsewhere = torch.stack([KEYS[0], -KEYS[1]])
    assert of_the_first(elsewhere) == pytest.approx(of_the_first(KEYS), rel=1e-9)


def test_an_empty_queue_leaves_nothing_to_learn() -> None:
    queries = QUERIES.clone().requires_grad_()
    loss = queue_nce(queries, KEYS, QUEUE[:0])
    loss.backward()
    assert float(loss.detach()) == pytest.approx(0, abs=1e-12)
    assert float(queries.grad.abs().max()) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_queue_may_be_overwritten_before_the_backward_pass(dtype: torch.dtype) -> None:
    queries, queue = QUERIES.to(dtype).requires_grad_(), QUEUE.to(dtype)
    (expected,) = torch.autograd.grad(queue_nce(queries, KEYS.to(dtype), queue), queries)
    loss = queue_nce(queries, KEYS.to(dtype), queue)
    queue[:2] = KEYS.to(dtype)
    (gradient,) = torch.autograd.grad(loss, queries)
    assert torch.equal(gradient, expected)
