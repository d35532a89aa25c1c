"""Principal axes against the singular value decomposition, for arrays and tensors alike; unit rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotrope.measures.principal import principal_axes, signed_axes
from isotrope.measures.unit_vectors import unit_rows


@pytest.fixture
def vectors() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(50, 6)) * np.linspace(3, 0.2, 6)


def test_axes_are_those_of_the_singular_value_decomposition(vectors: np.ndarray) -> None:
    _, lengths, rows = np.linalg.svd(vectors, full_matrices=False)
    values, axes = principal_axes(vectors.T @ vectors)
    assert values == pytest.approx(lengths**2)
    assert np.abs(axes.T @ rows.T) == pytest.approx(np.eye(6), abs=1e-9)  # up to the sign of each
    assert signed_axes(-axes) == pytest.approx(signed_axes(axes))
    assert (signed_axes(axes).max(axis=0) == np.abs(axes).max(axis=0)).all()


def test_tensors_and_arrays_have_the_same_axes(vectors: np.ndarray) -> None:
    scatter = vectors.T @ vectors
    values, axes = principal_axes(torch.from_numpy(scatter))
    assert values.numpy() == pytest.approx(principal_axes(scatter)[0])
    assert signed_axes(axes.numpy()) == pytest.approx(signed_axes(principal_axes(scatter)[1]), abs=1e-9)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_rows_have_length_one_in_the_precision_given(vectors: np.ndarray, precision: type[np.floating]) -> None:
    vectors[3] = 0
    found = unit_rows(vectors.astype(precision))
    assert found.dtype == precision
    assert np.linalg.norm(np.delete(found, 3, axis=0), axis=1) == pytest.approx(np.ones(49), abs=1e-6)
    assert not found[3].any()
    assert unit_rows(7 * vectors) == pytest.approx(unit_rows(vectors))
