"""Noise for denoising: what is kept, what is hidden, and how much of it."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from isotrope.data.corpus import Sentence
from isotrope.errors import InputError
from isotrope.tokens.word_pieces import Words
from isotrope.views.corruption import HideWords, Infill, Rotate, parse_noise, permute_sentences, span_lengths

MASK = 4
# Pieces 10 to 59 begin a word, 60 to 99 continue one; 0 to 3 are special.
STARTS = np.array([2] * 5 + [1] * 55 + [0] * 40, dtype=np.int8)
STOPS = np.array([1] * 5 + [0] * 95, dtype=np.int8)
FIXED = np.arange(100) < 4
WORDS = Words(STARTS, STOPS, FIXED, MASK)
PLAIN = np.arange(10, 40, dtype=np.int32)  # thirty words of one piece
PIECES = np.array([10, 60, 61, 11, 12, 62, 13, 14, 63, 15], dtype=np.int32)  # six words


def tokenizer(mask: int | None = MASK) -> Any:
    class Stub:
        words = Words(STARTS, STOPS, FIXED, mask)

    return Stub()


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 1.0])
def test_infilling_hides_exactly_its_budget_of_words(share: float) -> None:
    for seed in range(200):
        found = Infill(WORDS, share)(PLAIN, rng(seed))
        visible = found[found != MASK]
        assert len(visible) == 30 - math.ceil(share * 30)
        assert (np.diff(visible) > 0).all()  # the rest stands in its order
        assert (found == MASK).any()


def test_a_span_is_one_mask_and_spans_of_no_words_are_insertions() -> None:
    """Runs of missing words stand exactly where a mask is; where none is missing, a mask was inserted."""
    inserted = 0
    for seed in range(300):
        found = Infill(WORDS, 0.3)(PLAIN, rng(seed)).tolist()
        seen = [token for token in found if token != MASK]
        for left, right in pairwise(seen):
            between = found[found.index(left) + 1 : found.index(right)]
            assert bool(between) or right == left + 1
            inserted += bool(between) and right == left + 1
    assert inserted > 20  # Poisson(3) is 0 one time in twenty


def test_lengths_are_poisson_and_the_last_is_cut() -> None:
    source = rng()
    long = span_lengths(200_000, 3.0, source)
    assert long.sum() == 200_000
    assert long.mean() == pytest.approx(3.0, abs=0.03)
    shares = np.bincount(long)[:6] / len(long)
    assert shares == pytest.approx([0.0498, 0.1494, 0.2240, 0.2240, 0.1680, 0.1008], abs=0.005)
    assert all(span_lengths(5, 3.0, source).sum() == 5 for _ in range(50))
    assert span_lengths(0, 3.0, source).size == 0


def test_every_arrangement_of_spans_is_as_likely() -> None:
    """Three words, one hidden: each of them as often as the others."""
    hidden = np.zeros(3)
    for seed in range(3000):
        found = Infill(WORDS, 1 / 3, length=1.0)(PLAIN[:3], rng(seed))
        hidden += [word not in found for word in PLAIN[:3]]
    assert hidden / 3000 == pytest.approx([1 / 3] * 3, abs=0.03)


def test_words_are_hidden_whole() -> None:
    for seed in range(100):
        found = Infill(WORDS, 0.5)(PIECES, rng(seed))
        assert len(WORDS.split(found[found != MASK])[1]) == 3
        assert {tuple(part) for part in np.split(found, WORDS.split(found)[0][1:])} <= {
            (10, 60, 61), (11,), (12, 62), (13,), (14, 63), (15,), (MASK,)
        }  # fmt: skip
        hidden = HideWords(WORDS, 0.5)(PIECES, rng(seed))
        for word in ((0, 1, 2), (3,), (4, 5), (6,), (7, 8), (9,)):
            part = hidden[list(word)]
            assert (part == MASK).all() or np.array_equal(part, PIECES[list(word)])


def test_the_share_of_hidden_words() -> None:
    shares = [(HideWords(WORDS, 0.3)(PLAIN, rng(seed)) == MASK).mean() for seed in range(400)]
    assert np.mean(shares) == pytest.approx(0.3, abs=0.02)


def test_rotation_is_a_cyclic_shift_to_the_start_of_a_word() -> None:
    starts = []
    for seed in range(600):
        found = Rotate(WORDS, 1.0)(PIECES, rng(seed)).tolist()
        shift = PIECES.tolist().index(found[0])
        assert found == [*PIECES[shift:].tolist(), *PIECES[:shift].tolist()]
        starts.append(shift)
    assert set(starts) == {0, 3, 4, 6, 7, 9}
    assert starts.count(0) / 600 == pytest.approx(1 / 6, abs=0.05)
    turned = [not np.array_equal(Rotate(WORDS, 0.5)(PLAIN, rng(seed)), PLAIN) for seed in range(400)]
    assert np.mean(turned) == pytest.approx(0.5 * 29 / 30, abs=0.07)


def test_sentences_change_places_and_stay_whole() -> None:
    sentences = [np.full(number + 1, number) for number in range(7)]
    orders = set()
    for seed in range(200):
        found = permute_sentences(sentences, 1.0, rng(seed))
        assert sorted(part[0] for part in found) == list(range(7))
        assert all(len(part) == part[0] + 1 for part in found)
        orders.add(tuple(int(part[0]) for part in found))
        few = [int(part[0]) for part in permute_sentences(sentences, 0.3, rng(seed))]
        assert sum(place != number for place, number in enumerate(few)) <= math.ceil(0.3 * 7)
    assert len(orders) > 190


def test_noise_of_nothing_changes_nothing() -> None:
    for text in ("permute:0,infill:0", "mask:0,delete:0,rotate:0", "permute:1"):
        corruptor = parse_noise(text)(tokenizer())
        assert np.array_equal(corruptor([Sentence(PIECES, PIECES)], rng()), PIECES)


def test_noises_are_composed_in_order() -> None:
    corruptor = parse_noise("permute:1, infill:0.3", infill_length=5.0)(tokenizer())
    assert corruptor.permuted == 1.0
    (edit,) = corruptor.edit.edits  # type: ignore[attr-defined]
    assert (type(edit), edit.share, edit.length) == (Infill, 0.3, 5.0)
    both = parse_noise("delete:0.5,mask:0.5")(tokenizer())
    found = both([Sentence(part, part) for part in (PLAIN[:15], PLAIN[15:])], rng(3))
    assert len(found) < 30
    assert (found == MASK).any()
    assert set(found.tolist()) <= {MASK, *PLAIN.tolist()}


def test_what_is_given_stays_as_it_is() -> None:
    given = PIECES.copy()
    for text in ("mask:0.9", "infill:0.9", "delete:0.9", "rotate:1", "permute:1,rotate:1"):
        parse_noise(text)(tokenizer())([Sentence(given, given)], rng())
        assert np.array_equal(given, PIECES)


@pytest.mark.parametrize(
    ("noise", "named"),
    [
        ("shuffle:1", "Unknown noise.*permute, mask, delete, infill, rotate"),
        ("infill", "names no share"),
        ("infill:1.5", "from 0 to 1"),
        ("permute:2", "from 0 to 1"),
        ("delete:1", "not 1"),
        ("infill:0.3,permute:1", "must come first"),
        ("", "Unknown noise"),
    ],
)
def test_noise_that_cannot_be_is_refused(noise: str, named: str) -> None:
    with pytest.raises(InputError, match=named):
        parse_noise(noise)


def test_a_tokenizer_without_a_mask_is_refused() -> None:
    for noise in ("mask:0.1", "infill:0.1"):
        with pytest.raises(InputError, match="no mask token"):
            parse_noise(noise)(tokenizer(None))
    parse_noise("permute:1,delete:0.1,rotate:1")(tokenizer(None))
    with pytest.raises(InputError, match="infill_length"):
        parse_noise("infill:0.3", 0.5)
