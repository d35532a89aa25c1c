"""Shuffled trigrams: which tokens change places, and what is asked of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotrope.tokens.padded import Tokens
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.masking import Masked, mask_tokens
from isotrope.views.shuffling import shuffle_trigrams


def rows_of(tokenizer: TextTokenizer, *lengths: int) -> Tokens:
    """Rows in which no token stands twice."""
    return tokenizer.frame([np.arange(10, 10 + length) for length in lengths], 200)


def unasked(tokens: Tokens) -> Masked:
    return Masked.of(tokens, torch.full_like(tokens.ids, -100))


@pytest.mark.parametrize("share", [0.05, 0.3, 1.0])
def test_labels_are_a_permutation_of_what_stands_there_and_nothing_else_changes(
    tokenizer: TextTokenizer, share: float
) -> None:
    tokens = rows_of(tokenizer, 90, 40, 9)
    found = shuffle_trigrams(unasked(tokens), tokenizer, np.random.default_rng(0), share)
    asked = found.labels >= 0
    assert torch.equal(found.tokens.ids[~asked], tokens.ids[~asked])
    assert torch.equal(found.labels[asked], tokens.ids[asked])
    for row in range(3):
        places = asked[row].nonzero().flatten().tolist()
        assert len(places) % 3 == 0
        while places:  # neighbouring trigrams are told apart from the left
            run, places = places[:3], places[3:]
            assert run[2] - run[0] == 2
            assert (
                sorted(found.tokens.ids[row, run].tolist())
                == found.labels[row, run].tolist()
                != found.tokens.ids[row, run].tolist()
            )


def test_masked_and_special_tokens_keep_their_places(tokenizer: TextTokenizer) -> None:
    tokens = tokenizer.frame_pairs([np.arange(10, 50)] * 20, [np.arange(50, 90)] * 20)
    masked = mask_tokens(tokens, tokenizer, np.random.default_rng(0))
    found = shuffle_trigrams(masked, tokenizer, np.random.default_rng(1), 1.0)
    asked, before = found.labels >= 0, masked.labels >= 0
    assert asked.any()
    assert not (asked & before).any()
    assert torch.equal(found.tokens.ids[before], masked.tokens.ids[before])
    special = torch.isin(tokens.ids, torch.tensor(sorted(tokenizer.specials)))
    assert not (asked & special).any()
    # Nothing wanders from one segment into the other.
    sides = [
        torch.sort(torch.where(tokens.segments == side, view.ids, 0)).values
        for side in (0, 1)
        for view in (found.tokens, masked.tokens)
    ]
    assert torch.equal(sides[0], sides[1])
    assert torch.equal(sides[2], sides[3])
    assert found.tokens.segments is tokens.segments


def test_the_share_is_that_of_the_trigrams(tokenizer: TextTokenizer) -> None:
    tokens = rows_of(tokenizer, *([102] * 200))
    found = shuffle_trigrams(unasked(tokens), tokenizer, np.random.default_rng(0), 0.005)
    trigrams = int((found.labels >= 0).sum()) / 3
    assert trigrams / (200 * 100) == pytest.approx(0.005, abs=3 * np.sqrt(0.005 / 20_000))


def test_all_five_wrong_orders_come_up(tokenizer: TextTokenizer) -> None:
    found = shuffle_trigrams(unasked(rows_of(tokenizer, *([3] * 200))), tokenizer, np.random.default_rng(0), 1.0)
    orders = {tuple(row) for row in found.tokens.ids[:, 1:4].tolist()}
    assert len(orders) == 5
    assert (10, 11, 12) not in orders


def test_short_rows_have_nothing_to_shuffle(tokenizer: TextTokenizer) -> None:
    found = shuffle_trigrams(unasked(rows_of(tokenizer, 0, 1, 2)), tokenizer, np.random.default_rng(0), 1.0)
    assert len(found.asked) == 0


def test_a_prompt_keeps_its_order(tokenizer: TextTokenizer) -> None:
    prompted = TextTokenizer(tokenizer.tokenizer, "the old cat walks the dog ")
    tokens = prompted.frame([np.arange(10, 30)] * 20, 200)
    before = len(prompted.prefix)
    assert before > 3
    found = shuffle_trigrams(unasked(tokens), prompted, np.random.default_rng(0), 1.0)
    assert torch.equal(found.tokens.ids[:, :before], tokens.ids[:, :before])
    assert (found.labels[:, before:] >= 0).any()
