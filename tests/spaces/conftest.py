"""A tiny encoder that is crowded like a real one, and texts enough to fit a map to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import isotrope
from isotrope.encoders.encoder import Encoder


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def encoder(tiny: Path) -> Encoder:
    """Layers 2, width 32, mean pooling."""
    return isotrope.load(tiny, device="cpu")


@pytest.fixture(scope="session")
def texts(topics: list[str]) -> list[str]:
    return topics[:600]
