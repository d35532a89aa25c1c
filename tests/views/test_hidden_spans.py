"""Fragments and spans that a decoder writes: exact counts, and what puts the text together again."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from isotrope.views.hidden_spans import (
    draw_fragment,
    draw_spans,
    hide_fragment,
    random_parts,
    raw_length,
    span_counts,
    with_sentinels,
)

T5 = (0.15, 3.0, 100)
MASK = 4


class Stub:
    mask = MASK
    vocabulary = 50


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("room", "raw", "target"), [(511, 568, 114), (127, 141, 29)])
def test_the_lengths_of_t5(room: int, raw: int, target: int) -> None:
    """512 and 128 tokens with the one that ends the text."""
    assert raw_length(room, *T5) == raw
    hidden, spans = span_counts(raw, *T5)
    assert hidden + spans + 1 == target
    assert raw - hidden + spans == room


@pytest.mark.parametrize("length", [1, 2, 3, 7, 20, 62, 511])
def test_spans_are_exact_and_take_turns(length: int) -> None:
    hidden, spans = span_counts(length, *T5)
    for seed in range(30):
        mask = draw_spans(length, *T5, rng(seed))
        assert (len(mask), mask.sum()) == (length, hidden)
        runs = np.diff(np.concatenate(([False], mask)).astype(int)) == 1
        if length > 1:
            assert not mask[0]
            assert mask[-1]
            assert runs.sum() == spans


def test_a_single_token_is_never_hidden() -> None:
    assert draw_spans(1, *T5, rng()).tolist() == [False]
    assert span_counts(1, *T5)[0] == 0


def test_splicing_the_target_restores_the_text() -> None:
    top = 199
    last = -1
    for seed in range(60):
        ids = rng(seed).integers(0, 90, size=40 + seed)
        hidden = np.roll(draw_spans(len(ids), *T5, rng(seed)), seed if seed % 2 else 0)
        source, target = with_sentinels(ids, hidden, top)
        marks = source[source >= 100]
        assert (
            marks.tolist() == target[target >= 100].tolist() == list(range(top, top - len(marks), -1))
        )  # counting down
        parts: dict[int, list[int]] = {}
        for token in target.tolist():
            parts[token if token >= 100 else last] = [*parts.get(last, []), token] if token < 100 else []
            last = token if token >= 100 else last
        assert [piece for token in source.tolist() for piece in parts.get(token, [token])] == ids.tolist()
        assert len(source) == len(ids) - hidden.sum() + len(marks)
        assert len(target) == hidden.sum() + len(marks)
        if not seed % 2:  # as in the released code, which turns the mask over
            assert with_sentinels(ids, ~hidden, top)[0].tolist() == target.tolist()


def test_there_are_never_more_spans_than_sentinels() -> None:
    assert span_counts(10, *T5) == (2, 1)  # 1.5 is rounded, as by numpy in the released code
    assert span_counts(57, *T5) == (9, 3)
    assert span_counts(33, *T5) == (5, 2)  # 5 / 3 as well
    assert span_counts(500, 0.5, 1.0, 7)[1] == 7
    assert span_counts(10, 0.9, 1.0, 100) == (9, 1)  # nor more than visible tokens


def test_every_sum_is_as_likely() -> None:
    found = Counter(tuple(random_parts(5, 3, rng(seed)).tolist()) for seed in range(3000))
    assert set(found) == {(1, 1, 3), (1, 3, 1), (3, 1, 1), (1, 2, 2), (2, 1, 2), (2, 2, 1)}
    assert min(found.values()) > 400


def test_the_fragment_has_its_share_and_begins_anywhere() -> None:
    starts: Counter[int] = Counter()
    for seed in range(2000):
        fragment = draw_fragment(20, 0.5, 0.0, rng(seed))
        assert fragment.stop - fragment.start == 10
        starts[fragment.start] += 1
    assert set(starts) == set(range(11))
    assert min(starts.values()) > 120
    assert draw_fragment(1, 0.5, 0.0, rng()) == slice(0, 1)
    rounded = draw_fragment(11, 0.5, 0.0, rng())
    assert rounded.stop - rounded.start == 6
    assert draw_fragment(9, 1.0, 0.0, rng()) == slice(0, 9)
    assert draw_fragment(9, 1e-9, 0.0, rng(1)).stop - draw_fragment(9, 1e-9, 0.0, rng(1)).start == 1


def test_edges_of_the_released_code() -> None:
    """A fifth begins the text, a fifth ends it, the rest is anywhere."""
    starts = [draw_fragment(20, 0.5, 0.2, rng(seed)).start for seed in range(4000)]
    assert np.mean([start == 0 for start in starts]) == pytest.approx(0.2 + 0.6 / 11, abs=0.025)
    assert np.mean([start == 10 for start in starts]) == pytest.approx(0.2 + 0.6 / 11, abs=0.025)


def test_what_becomes_of_the_fragment() -> None:
    ids = np.full(4000, 60)
    stub: Any = Stub()
    found = hide_fragment(ids, slice(1000, 3000), stub, rng())
    assert (found[:1000] == 60).all()
    assert (found[3000:] == 60).all()
    inside = found[1000:3000]
    assert np.mean(inside == MASK) == pytest.approx(0.8, abs=0.03)  # and one in 500 by chance
    assert np.mean(inside == 60) == pytest.approx(0.1, abs=0.03)
    assert (ids == 60).all()


def test_a_text_without_tokens_has_nothing_to_hide() -> None:
    rng = np.random.default_rng(0)
    assert draw_spans(0, 0.15, 3.0, 100, rng).tolist() == []
