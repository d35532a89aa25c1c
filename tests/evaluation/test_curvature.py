"""The unit in which the search of many logistic regressions counts its steps."""

import numpy as np
import pytest
import torch

from isotrope.evaluation import curvature
from isotrope.evaluation.curvature import Problems, _root
from isotrope.evaluation.logistic import fit_many


def test_a_unit_that_rounding_made_indefinite_is_raised_until_it_has_a_root():
    """Products of lower precision (TF32) leave a curvature with eigenvalues a little below zero."""
    rng = np.random.default_rng(0)
    basis = torch.from_numpy(np.linalg.qr(rng.normal(size=(40, 40)))[0])
    values = torch.linspace(1e-3, 1, 40, dtype=torch.double)
    values[0] = -1e-4
    matrix = basis @ torch.diag(values) @ basis.T
    root = _root(matrix)
    assert torch.linalg.cholesky_ex(matrix + 1e-6 * torch.eye(40) * matrix.diagonal().mean())[1] > 0
    assert root.isfinite().all()
    assert (root.T @ root - matrix).abs().max() < 1e-2


def test_where_all_classes_are_as_likely_the_blocks_are_the_whole_curvature():
    """k is then the same for every row, and its mean over the rows loses nothing."""
    rng = np.random.default_rng(1)
    rows = torch.from_numpy(rng.normal(size=(50, 4)))
    rows[:, -1] = 1
    problems = Problems(
        rows,
        torch.from_numpy(rng.integers(0, 3, 50)),
        torch.full((50, 1), 1 / 50, dtype=torch.double),
        torch.tensor([[0.1], [0.2], [0.3], [0.0]], dtype=torch.double),
        torch.ones(4, 1, dtype=torch.double),
        scores=3,
    )
    nothing = torch.zeros(4, 1, 3, dtype=torch.double)
    whole, parts = problems.unit(nothing, True), problems.unit(nothing, False)
    free = torch.eye(12, dtype=torch.double).reshape(3, 4, 12).permute(1, 2, 0)  # [dimensions, problems, scores]
    inverses = []
    for unit in (whole, parts):
        side = unit.weights(free).permute(2, 0, 1).flatten(0, 1)  # L^(-T), of one basis or another
        inverses.append(side @ side.T)
    together = torch.linalg.inv(inverses[0]), torch.linalg.inv(inverses[1])
    assert torch.allclose(together[0], together[1], atol=1e-5)


def test_the_unit_changes_steps_and_not_the_solution(monkeypatch: pytest.MonkeyPatch):
    rng = np.random.default_rng(2)
    labels = torch.from_numpy(rng.integers(0, 4, 200))
    vectors = torch.from_numpy(rng.normal(size=(200, 6)) + 0.8 * np.eye(4, 6)[labels.numpy()])
    parts = torch.from_numpy(rng.random((200, 3)) < 0.9)
    strengths = torch.tensor([0.1, 0.1, 4.0])
    coupled = fit_many(vectors, labels, parts, strengths, True)
    monkeypatch.setattr(curvature, "LARGEST", 0)
    apart = fit_many(vectors, labels, parts, strengths, True)
    assert torch.allclose(coupled.weights, apart.weights, atol=1e-4)
    assert torch.equal(coupled.classes(vectors), apart.classes(vectors))
