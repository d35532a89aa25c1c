"""The unit in which the search of many logistic regressions counts its steps."""

import numpy as np
import torch

from isotrope.evaluation.curvature import _root


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
