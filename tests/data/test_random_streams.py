"""Random streams by purpose: none is another one's."""

from __future__ import annotations

import numpy as np
import torch

from isotrope.data.random_streams import keyed_seed


def test_no_key_is_another_ones_with_zeros_behind_it() -> None:
    """numpy's own sequence of seeds takes all of these for one."""
    keys = [
        ("loss", 42, 7),
        ("loss", 42, 7, 0),
        ("forward", 42, 7),
        ("forward", 42, 7, 0, 0),
        ("order", 42),
        ("order",),
    ]
    padded = [("loss", 4, 27), ("loss", 42, 70), ("loss", 427)]
    assert len({keyed_seed(*key) for key in (*keys, *padded)}) == 9  # type: ignore[arg-type]


def test_a_key_gives_the_same_seed_whatever_number_type_it_is_made_of() -> None:
    assert keyed_seed("loss", np.int64(42), np.int32(7)) == keyed_seed("loss", 42, 7)  # type: ignore[arg-type]


def test_seeds_suit_numpy_and_torch_and_use_their_bits() -> None:
    seeds = np.array([keyed_seed("views", 42, step) for step in range(4000)])
    assert seeds.min() >= 0
    for seed in seeds[:3].tolist():
        assert torch.Generator().manual_seed(seed).initial_seed() == seed
        assert np.random.default_rng(seed).bit_generator.seed_seq.entropy == seed  # type: ignore[attr-defined]
    for bit in range(63):
        assert abs(((seeds >> bit) & 1).mean() - 0.5) < 0.05
