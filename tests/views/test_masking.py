"""Masking: how many, which, what becomes of them, and where the answers stand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.tokens.padded import Tokens
from isotrope.tokens.template import Template, templated
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.masking import Masked, mask_rows, mask_tokens


def rows_of(tokenizer: TextTokenizer, *lengths: int, seed: int = 0) -> Tokens:
    """Ordinary tokens drawn at random, framed and padded."""
    rng = np.random.default_rng(seed)
    return tokenizer.frame([rng.integers(5, tokenizer.vocabulary, size=length) for length in lengths], 10_000)


@pytest.fixture(scope="module")
def large(tokenizer) -> Tokens:
    return rows_of(tokenizer, *[500] * 400)  # 200,000 ordinary tokens: a share is known to about 0.2 %


def chosen(masked: Masked) -> torch.Tensor:
    return masked.labels >= 0


def shares(before: Tokens, masked: Masked, mask: int) -> tuple[float, float, float]:
    """(hidden, kept, replaced) of the chosen."""
    asked = chosen(masked)
    hidden = masked.tokens.ids[asked] == mask
    kept = masked.tokens.ids[asked] == before.ids[asked]
    return hidden.double().mean().item(), kept.double().mean().item(), (~hidden & ~kept).double().mean().item()


@pytest.mark.parametrize("rate", [0.15, 0.4])
def test_the_rate_is_the_share_of_ordinary_tokens(large, tokenizer, rate):
    masked = mask_tokens(large, tokenizer, np.random.default_rng(1), rate)
    assert chosen(masked).sum().item() / 200_000 == pytest.approx(rate, abs=0.005)


def test_the_fate_of_the_chosen_is_80_10_10(large, tokenizer):
    masked = mask_tokens(large, tokenizer, np.random.default_rng(2), rate=0.5)
    chance = 0.1 / tokenizer.vocabulary  # a random token may be the old one, or [MASK]
    hidden, kept, replaced = shares(large, masked, tokenizer.mask)
    assert hidden == pytest.approx(0.8 + chance, abs=0.006)
    assert kept == pytest.approx(0.1 + chance, abs=0.006)
    assert replaced == pytest.approx(0.1 - 2 * chance, abs=0.006)


@pytest.mark.parametrize(("keep", "replace"), [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.3, 0.2)])
def test_other_shares(large, tokenizer, keep, replace):
    masked = mask_tokens(large, tokenizer, np.random.default_rng(3), 0.3, keep, replace)
    hidden, kept, replaced = shares(large, masked, tokenizer.mask)
    chance = 2 / tokenizer.vocabulary
    assert hidden == pytest.approx(1 - keep - replace, abs=0.01 + chance)
    assert kept == pytest.approx(keep, abs=0.01 + chance)
    assert replaced == pytest.approx(replace, abs=0.01 + chance)


def test_random_tokens_come_from_the_whole_vocabulary(large, tokenizer):
    masked = mask_tokens(large, tokenizer, np.random.default_rng(4), 0.5, keep=0.0, replace=1.0)
    seen = torch.bincount(masked.tokens.ids[chosen(masked)], minlength=tokenizer.vocabulary)
    assert len(seen) == tokenizer.vocabulary
    assert seen.min() > 0.7 * seen.double().mean()


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 12), min_size=1, max_size=8),
    seed=st.integers(0, 999),
    rate=st.sampled_from([0.0, 0.15, 1.0]),
)
def test_special_tokens_and_padding_are_never_chosen_and_each_row_is_asked(tokenizer, lengths, seed, rate):
    tokens = rows_of(tokenizer, *lengths, seed=seed)
    before = tokens.ids.clone()
    masked = mask_tokens(tokens, tokenizer, np.random.default_rng(seed), rate)
    asked = chosen(masked)
    ordinary = (tokens.mask > 0) & ~torch.isin(before, torch.tensor(sorted(tokenizer.specials)))
    assert not (asked & ~ordinary).any()
    assert torch.equal(masked.labels[asked], before[asked])
    assert (masked.labels[~asked] == -100).all()
    assert torch.equal(masked.tokens.ids[~asked], before[~asked])
    assert torch.equal(tokens.ids, before)  # the view itself is left as it was
    assert torch.equal(masked.tokens.mask, tokens.mask)
    counts = asked.sum(dim=1).tolist()
    for length, count in zip(lengths, counts, strict=True):
        assert count == (length if rate == 1.0 else min(length, 1) if rate == 0.0 else count)
        assert count >= min(length, 1)


def test_asked_are_the_flat_positions_of_the_labels(tokenizer):
    masked = mask_tokens(rows_of(tokenizer, 9, 3, 0, 6), tokenizer, np.random.default_rng(0), 0.5)
    assert len(masked) == 4
    assert torch.equal(masked.asked, torch.nonzero(masked.labels.flatten() != -100).flatten())
    assert len(masked.asked) >= 3


@settings(max_examples=30, deadline=None)
@given(lengths=st.lists(st.integers(0, 12), min_size=2, max_size=8), data=st.data())
def test_a_cut_keeps_labels_beside_their_tokens(tokenizer, lengths, data):
    masked = mask_tokens(rows_of(tokenizer, *lengths), tokenizer, np.random.default_rng(0), 0.4)
    start = data.draw(st.integers(0, len(lengths) - 1))
    end = data.draw(st.integers(start + 1, len(lengths)))
    part = masked.rows(slice(start, end))
    assert part.labels.shape == part.tokens.ids.shape
    assert part.tokens.ids.shape[1] == max(lengths[start:end]) + 2
    width = part.labels.shape[1]
    assert torch.equal(part.labels, masked.labels[start:end, :width])
    assert torch.equal(part.tokens.ids, masked.tokens.ids[start:end, :width])
    assert torch.equal(part.labels.flatten()[part.asked], masked.labels[start:end][masked.labels[start:end] >= 0])


def test_cuts_together_ask_what_the_whole_asks(tokenizer):
    masked = mask_tokens(rows_of(tokenizer, 9, 3, 0, 6, 2), tokenizer, np.random.default_rng(0), 0.5)
    parts = [masked.rows(slice(start, start + 2)) for start in (0, 2, 4)]
    answers = [part.labels.flatten()[part.asked] for part in parts]
    assert torch.equal(torch.cat(answers), masked.labels.flatten()[masked.asked])


def test_the_same_chance_gives_the_same_masks(tokenizer):
    tokens = rows_of(tokenizer, *[20] * 10)
    first, again, other = (mask_tokens(tokens, tokenizer, np.random.default_rng(seed)) for seed in (5, 5, 6))
    assert torch.equal(first.labels, again.labels)
    assert torch.equal(first.tokens.ids, again.tokens.ids)
    assert not torch.equal(first.labels, other.labels)


def test_rows_are_masked_where_they_lie_so_many_of_each():
    """Exactly k ordinary tokens of every row; 80/10/10; the answers are what stood there; random tokens are ordinary
    ones.
    """
    generator = torch.Generator().manual_seed(0)
    ids = torch.randint(5, 100, (400, 32), generator=generator)
    ids[:, 0], ids[:, -1], ids[:, 7] = 2, 3, 3  # a border of documents inside the row
    specials = torch.arange(5)
    torch.manual_seed(1)
    shown, asked, answers = mask_rows(ids, specials, 4, 100, 9)
    assert torch.equal(ids.flatten()[asked], answers)
    assert (asked // 32).bincount().tolist() == [9] * 400
    assert not torch.isin(answers, specials).any()
    elsewhere = torch.ones(400 * 32, dtype=torch.bool)
    elsewhere[asked] = False
    assert torch.equal(shown.flatten()[elsewhere], ids.flatten()[elsewhere])
    seen = shown.flatten()[asked]
    kept, hidden = seen == answers, seen == 4
    assert hidden.float().mean().item() == pytest.approx(0.8, abs=0.02)
    assert kept.float().mean().item() == pytest.approx(0.1, abs=0.02)
    assert not torch.isin(seen[~kept & ~hidden], specials).any()
    torch.manual_seed(1)
    assert torch.equal(mask_rows(ids, specials, 4, 100, 9)[0], shown)


def test_a_row_with_too_few_ordinary_tokens_is_asked_for_those_alone():
    """Unknown words are no words to learn; the number of places stays, and the others cost nothing."""
    ids = torch.tensor([[2, 1, 50, 1, 1, 60, 1, 3], [2, 1, 1, 1, 1, 1, 1, 3]])
    specials = torch.arange(5)
    for seed in range(20):
        torch.manual_seed(seed)
        shown, asked, answers = mask_rows(ids, specials, 4, 100, 3)
        assert asked.shape == answers.shape == (6,)
        assert sorted(answers[:3].tolist()) == [-100, 50, 60]
        assert answers[3:].tolist() == [-100] * 3
        assert torch.equal(shown[torch.isin(ids, specials)], ids[torch.isin(ids, specials)])


def test_neither_a_prompt_nor_a_template_is_masked(tokenizer: TextTokenizer) -> None:
    prompted = TextTokenizer(tokenizer.tokenizer, "the old cat walks ")
    framed = TextTokenizer(templated(tokenizer.tokenizer, Template.parse("the cat [X] walks [MASK] the dog")))
    for each in (prompted, framed):
        tokens = each.frame([np.arange(10, 20)] * 50, 64)
        before, behind = len(each.prefix), len(each.suffix)
        assert before + behind > 3
        labels = mask_tokens(tokens, each, np.random.default_rng(0), rate=1.0).labels
        assert (labels[:, :before] < 0).all()
        assert (labels[:, -behind:] < 0).all()
        assert (labels[:, before:-behind] >= 0).all()
