"""Reciprocal rank fusion: its formula, and what it leaves as it is."""

from __future__ import annotations

import pytest

from isotrope.measures.rank_fusion import fuse


def test_golden_value() -> None:
    found = fuse([[7, 3, 5], [3, 9]])
    assert [item for item, _ in found] == [3, 7, 9, 5]
    assert dict(found) == pytest.approx({3: 1 / 62 + 1 / 61, 7: 1 / 61, 9: 1 / 62, 5: 1 / 63})


def test_one_ranking_stays_and_so_do_two_that_agree() -> None:
    assert [item for item, _ in fuse([[4, 1, 2]])] == [4, 1, 2]
    assert [item for item, _ in fuse([[4, 1, 2], []])] == [4, 1, 2]
    assert [item for item, _ in fuse([[4, 1, 2], [4, 1, 2]])] == [4, 1, 2]
    assert fuse([]) == []
