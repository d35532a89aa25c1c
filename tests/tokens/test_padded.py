"""Rows of a padded batch are cut, joined and moved without losing a token."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from isotrope.tokens.padded import Tokens, join


def view(*lengths: int, pad: int = 0, extra: int = 0) -> Tokens:
    """Rows 100·(row+1) + position, so that each token says where it comes from."""
    width = max(lengths) + extra
    present = torch.arange(width) < torch.tensor(lengths)[:, None]
    ids = torch.where(present, 100 * torch.arange(1, len(lengths) + 1)[:, None] + torch.arange(width), pad)
    return Tokens(ids, present.long(), np.array(lengths, dtype=np.int64))


def real(tokens: Tokens) -> list[list[int]]:
    return [tokens.ids[row, : tokens.lengths[row]].tolist() for row in range(len(tokens))]


def test_rows_come_without_the_padding_they_do_not_need():
    tokens = view(5, 2, 3, extra=4)
    some = tokens.rows(slice(1, 3))
    assert some.ids.tolist() == [[200, 201, 0], [300, 301, 302]]
    assert some.mask.tolist() == [[1, 1, 0], [1, 1, 1]]
    assert some.lengths.tolist() == [2, 3]
    assert real(tokens.rows(np.array([2, 0, 2]))) == [real(tokens)[i] for i in (2, 0, 2)]
    assert tokens.rows(np.array([1])).ids.shape == (1, 2)


def test_no_rows_are_rows_too():
    assert len(view(5, 2).rows(slice(0, 0))) == 0


@given(
    sizes=st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4), min_size=1, max_size=4), extra=st.integers(0, 2)
)
def test_joined_views_keep_their_rows_in_order(sizes, extra):
    views = [view(*lengths, pad=9, extra=extra) for lengths in sizes]
    whole = join(views, pad=9)
    assert real(whole) == [row for part in views for row in real(part)]
    assert (
        whole.mask.sum(dim=1).tolist() == whole.lengths.tolist() == [length for lengths in sizes for length in lengths]
    )
    assert (whole.ids[whole.mask == 0] == 9).all()


def test_moving_keeps_the_lengths_on_the_host():
    moved = view(3, 1).to(torch.device("meta"))
    assert moved.ids.device.type == "meta"
    assert isinstance(moved.lengths, np.ndarray)
