"""Tile by tile or at once: the same value and the same gradient, and no tile larger than it says."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from isotrope.objectives import chunked, contrast, info_nce, nt_xent, queue_nce
from isotrope.objectives.chunked import Marks, chunked_contrast, log_total

Loss = Callable[..., Tensor]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


LOSSES: dict[str, tuple[Loss, tuple[Tensor, ...]]] = {
    "info_nce": (info_nce, (drawn(7, 5), drawn(11, 5, seed=1))),
    "info_nce, negatives": (
        lambda a, c, n, t: info_nce(a, c, t, n, negative_weight=2.5),
        (drawn(7, 5), drawn(7, 5, seed=1), drawn(7, 5, seed=2)),
    ),
    "info_nce, own negative left out": (
        lambda a, c, n, t: info_nce(a, c, t, n, negative_weight=0.0),
        (drawn(7, 5), drawn(7, 5, seed=1), drawn(7, 5, seed=2)),
    ),
    "nt_xent": (nt_xent, (drawn(7, 5), drawn(7, 5, seed=1))),
    "queue_nce": (queue_nce, (drawn(7, 5), drawn(7, 5, seed=1), drawn(13, 5, seed=2))),
    "queue_nce, left out": (
        lambda q, k, u, t: queue_nce(q, k, u, t, left_out=torch.arange(91).view(7, 13) % 3 == 0),
        (drawn(7, 5), drawn(7, 5, seed=1), drawn(13, 5, seed=2)),
    ),
    "queue_nce, a query without a queue": (
        lambda q, k, u, t: queue_nce(q, k, u, t, left_out=torch.arange(7).view(7, 1).expand(7, 13) == 2),
        (drawn(7, 5), drawn(7, 5, seed=1), drawn(13, 5, seed=2)),
    ),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tile", [(1, 1), (3, 4), (100, 100)])
def test_tiles_change_neither_value_nor_gradient(
    name: str, tile: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    loss, vectors = LOSSES[name]
    temperature = torch.tensor(0.3, dtype=torch.float64)
    inputs = [tensor.clone().requires_grad_() for tensor in (*vectors, temperature)]
    plain = loss(*inputs)
    wanted = torch.autograd.grad(plain, inputs)
    monkeypatch.setattr(chunked, "PLAIN", 0)
    monkeypatch.setattr(chunked, "ROWS", tile[0])
    monkeypatch.setattr(chunked, "COLUMNS", tile[1])
    tiled = loss(*inputs)
    found = torch.autograd.grad(tiled, inputs)
    assert "LogTotal" in graph(tiled)
    assert "LogTotal" not in graph(plain)
    assert float(tiled.detach()) == pytest.approx(float(plain.detach()), rel=1e-12)
    for mine, theirs in zip(found, wanted, strict=True):
        assert float(theirs.abs().max()) > 1e-3
        torch.testing.assert_close(mine, theirs, rtol=1e-10, atol=1e-12)


def graph(loss: Tensor) -> str:
    """The names of the functions that the loss was made by."""
    names, waiting = [], [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is not None:
            names.append(type(node).__name__)
            waiting += [following for following, _ in node.next_functions]
    return " ".join(names)


def test_it_is_contrast_with_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunked, "ROWS", 2)
    monkeypatch.setattr(chunked, "COLUMNS", 3)
    anchors, candidates = drawn(5, 4), drawn(8, 4, seed=1)
    targets, marked = torch.tensor([7, 0, 3, 3, 1]), torch.tensor([0, 1, 2, 7, 5])
    weights = torch.ones(5, 8, dtype=torch.float64)
    weights[torch.arange(5), marked] = 0.2
    cosines = torch.nn.functional.normalize(anchors, dim=1) @ torch.nn.functional.normalize(candidates, dim=1).T
    found = chunked_contrast(anchors, candidates, targets, 0.5, marked, 0.2)
    assert float(found) == pytest.approx(float(contrast(cosines / 0.5, targets, weights)), rel=1e-12)


def test_a_row_without_candidates_is_minus_infinity_and_has_no_gradient() -> None:
    anchors, candidates = drawn(2, 3).requires_grad_(), drawn(4, 3, seed=1).requires_grad_()
    left_out = torch.tensor([[True] * 4, [False] * 4])
    total = log_total(anchors, candidates, 1.0, Marks(left_out=left_out))
    assert float(total[0]) == -math.inf
    of_anchors, of_candidates = torch.autograd.grad(total[1] + 0 * total[0].clamp(min=0), [anchors, candidates])
    assert torch.isfinite(of_anchors).all()
    assert torch.isfinite(of_candidates).all()
    assert float(of_anchors[0].abs().max()) == 0


def test_no_more_than_a_tile_of_scores_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 300 × 500 scores: neither the graph nor a single operation holds more than the vectors or a tile."""
    monkeypatch.setattr(chunked, "PLAIN", 0)
    monkeypatch.setattr(chunked, "ROWS", 16)
    monkeypatch.setattr(chunked, "COLUMNS", 32)
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, function, types, arguments=(), named=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            made = function(*arguments, **(named or {}))
            for one in made if isinstance(made, tuple | list) else (made,):
                if isinstance(one, Tensor):
                    largest = max(largest, one.numel())
            return made

    anchors, candidates = drawn(300, 4).requires_grad_(), drawn(500, 4, seed=1).requires_grad_()
    with Watch():
        info_nce(anchors, candidates).backward()
    assert largest == 500 * 4
    assert anchors.grad is not None
