"""Text → ids → padded rows, against what the tokeniser does by itself."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.views.tokens import Tokeniser, Tokens, join

TEXTS = ["the cat walks", "", "  blanks  at both ends ", "ÉCOLE 北京!", "the " * 40, "a", "the [SEP] fox <s> dog"]


def split(tokeniser: Tokeniser, texts: list[str]) -> list[np.ndarray]:
    flat, lengths = tokeniser.flat(texts)
    return np.split(flat, np.cumsum(lengths)[:-1])


def view(*lengths: int, pad: int = 0, extra: int = 0) -> Tokens:
    """Rows 100·(row+1) + position, so that each token says where it comes from."""
    width = max(lengths) + extra
    present = torch.arange(width) < torch.tensor(lengths)[:, None]
    ids = torch.where(present, 100 * torch.arange(1, len(lengths) + 1)[:, None] + torch.arange(width), pad)
    return Tokens(ids, present.long(), np.array(lengths, dtype=np.int64))


def real(tokens: Tokens) -> list[list[int]]:
    return [tokens.ids[row, : tokens.lengths[row]].tolist() for row in range(len(tokens))]


# ----------------------------------------------------------------------------------------------------------------------- tokeniser


@pytest.mark.parametrize("kind", ["tokeniser", "byte_tokeniser"])
@pytest.mark.parametrize("limit", [3, 4, 8, 32, 1000])
def test_framed_rows_are_those_of_the_tokeniser_itself(kind, limit, request):
    tokeniser = request.getfixturevalue(kind)
    tokens = tokeniser.frame(split(tokeniser, TEXTS), limit)
    expected = tokeniser.tokenizer(TEXTS, truncation=True, max_length=limit, padding=True, return_tensors="pt")
    torch.testing.assert_close(tokens.ids, expected["input_ids"])
    torch.testing.assert_close(tokens.mask, expected["attention_mask"])
    assert tokens.lengths.tolist() == expected["attention_mask"].sum(dim=1).tolist()


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=30), min_size=1, max_size=5))
def test_any_text_is_tokenised_as_by_the_tokeniser_itself(tokeniser, byte_tokeniser, texts):
    for each in (tokeniser, byte_tokeniser):
        expected = each.tokenizer(texts)["input_ids"]
        assert real(each.frame(split(each, texts), 10_000)) == expected


def test_the_frame_of_each_family_is_found(tokeniser, byte_tokeniser):
    pieces, pieces_of_bytes = tokeniser.tokenizer, byte_tokeniser.tokenizer
    assert (tokeniser.prefix, tokeniser.suffix) == ([pieces.cls_token_id], [pieces.sep_token_id])
    assert (byte_tokeniser.prefix, byte_tokeniser.suffix) == ([pieces_of_bytes.bos_token_id], [pieces_of_bytes.eos_token_id])
    assert (byte_tokeniser.pad, byte_tokeniser.mask) == (1, pieces_of_bytes.mask_token_id)
    assert tokeniser.specials == {0, 1, 2, 3, 4}


def test_flat_ids_of_nothing(tokeniser):
    for texts in ([], [""]):
        flat, lengths = tokeniser.flat(texts)
        assert flat.shape == (0,)
        assert lengths.tolist() == [0] * len(texts)
    assert flat.dtype == np.int32
    assert lengths.dtype == np.int64


def test_somebody_elses_truncation_and_padding_do_not_matter(tokeniser):
    expected = tokeniser.flat(TEXTS)[0].tolist()
    tokeniser.tokenizer(TEXTS, truncation=True, max_length=4, padding="max_length")  # stays set in the tokeniser
    assert tokeniser.flat(TEXTS)[0].tolist() == expected


def test_fingerprints_tell_tokenisers_apart(tokeniser, byte_tokeniser):
    assert tokeniser.fingerprint() == tokeniser.fingerprint() != byte_tokeniser.fingerprint()


# ---------------------------------------------------------------------------------------------------------------------------- rows


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


@given(sizes=st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=4), min_size=1, max_size=4), extra=st.integers(0, 2))
def test_joined_views_keep_their_rows_in_order(sizes, extra):
    views = [view(*lengths, pad=9, extra=extra) for lengths in sizes]
    whole = join(views, pad=9)
    assert real(whole) == [row for part in views for row in real(part)]
    assert whole.mask.sum(dim=1).tolist() == whole.lengths.tolist() == [length for lengths in sizes for length in lengths]
    assert (whole.ids[whole.mask == 0] == 9).all()


def test_moving_keeps_the_lengths_on_the_host():
    moved = view(3, 1).to(torch.device("meta"))
    assert moved.ids.device.type == "meta"
    assert isinstance(moved.lengths, np.ndarray)
