"""Distinct keys by ranges: the number is that of a set, however many ranges there are."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from isotrope.data.corpus_files import Keys
from isotrope.data.distinct_keys import MOST, count_distinct


def counted(keys: Keys, held: int) -> tuple[int, int]:
    """How many differ, and how often the keys were read."""
    readings = []

    def blocks(size: int) -> Iterator[Keys]:
        readings.append(size)
        yield from (keys[start : start + 7] for start in range(0, len(keys), 7))

    return count_distinct(blocks, len(keys), held), len(readings)


@pytest.mark.parametrize(("held", "readings"), [(1000, 1), (100, 5), (3, MOST)])
def test_the_number_is_that_of_a_set(held: int, readings: int) -> None:
    draw = np.random.default_rng(0)
    keys = draw.choice(draw.integers(0, 1 << 64, 200, dtype=np.uint64), 500)
    assert counted(keys, held) == (len(set(keys.tolist())), readings)


def test_the_ends_of_the_range_belong_to_it() -> None:
    keys = np.array([0, (1 << 64) - 1, 0, 1 << 63, (1 << 63) - 1, (1 << 64) - 1], dtype=np.uint64)
    assert counted(keys, 2) == (4, 3)
