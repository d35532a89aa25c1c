"""Hidden n-grams: what stays visible and the n-gram make up the text, lengths follow their distribution."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

import isotrope
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.ngrams import hide_ngrams


@pytest.fixture(scope="module")
def encoder(tiny: Path) -> isotrope.Encoder:
    return isotrope.load(tiny, device="cpu")


def test_the_visible_tokens_and_the_ngram_make_up_the_sentence(encoder: isotrope.Encoder, topics: list[str]) -> None:
    tokens = encoder.tokenize([*topics[:50], "salt", "the chef"], max_length=16)
    hidden, ngrams = hide_ngrams(tokens, encoder.text_tokenizer, np.random.default_rng(0))
    mask = encoder.text_tokenizer.mask
    for row, (before, after, ngram) in enumerate(zip(tokens.ids, hidden.ids, ngrams, strict=True)):
        places = (after == mask).nonzero().squeeze(1)
        assert len(places) == len(ngram) >= 1
        assert places.tolist() == list(range(int(places[0]), int(places[0]) + len(places)))  # no gap
        assert before[places].tolist() == ngram.tolist()
        assert bool((before == after)[after != mask].all())
        inner = int(tokens.lengths[row]) - 2
        assert int(places[0]) >= 1
        assert int(places[-1]) <= inner
        assert len(ngram) < inner or inner == 1
    assert not bool((tokens.ids == mask).any())  # what was given is left as it was


def test_lengths_have_their_mean_their_spread_and_their_ends(encoder: isotrope.Encoder, topics: list[str]) -> None:
    tokens = encoder.tokenize(topics, max_length=64)
    rng = np.random.default_rng(1)
    sizes = np.array([len(ngram) for ngram in hide_ngrams(tokens, encoder.text_tokenizer, rng)[1]])
    assert sizes.mean() == pytest.approx(5.0, abs=0.1)
    assert sizes.std() == pytest.approx(np.sqrt(1 + 1 / 12), abs=0.1)  # rounding adds a twelfth
    wide = np.array([len(ngram) for ngram in hide_ngrams(tokens, encoder.text_tokenizer, rng, 5.0, 9.0, 8)[1]])
    assert set(wide) == set(range(1, 9))


def test_a_text_without_tokens_has_an_empty_ngram(encoder: isotrope.Encoder) -> None:
    tokens = encoder.frame([np.array([], dtype=np.int64)])
    hidden, ngrams = hide_ngrams(tokens, encoder.text_tokenizer, np.random.default_rng(0))
    assert hidden.ids.tolist() == tokens.ids.tolist()
    assert len(ngrams[0]) == 0


def test_a_prompt_is_never_hidden(tokenizer: TextTokenizer) -> None:
    prompted = TextTokenizer(tokenizer.tokenizer, "the old cat walks ")
    tokens = prompted.frame([np.arange(10, 16)] * 50, 64)
    before = len(prompted.prefix)
    assert before > len(prompted.start)
    hidden, ngrams = hide_ngrams(tokens, prompted, np.random.default_rng(0))
    assert torch.equal(hidden.ids[:, :before], tokens.ids[:, :before])
    assert all(len(ngram) for ngram in ngrams)
