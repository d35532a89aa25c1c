"""Spans: how long, where, how many, and what becomes of short documents."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from isotrope.errors import InputError
from isotrope.views.spans import PLACES, Span, SpanSettings, count_short, sample_anchors, sample_positives

DRAWS = 4000


def lengths_of(spans: list[Span]) -> np.ndarray:
    return np.array([end - start for start, end in spans])


def drawn(tokens: int, asked: SpanSettings, draws: int = DRAWS) -> list[list[tuple[Span, list[Span]]]]:
    """(anchor, its positives) of many draws on one document."""
    rng = np.random.default_rng(0)
    documents = [sample_anchors(tokens, asked, rng) for _ in range(draws)]
    return [[(anchor, sample_positives(tokens, anchor, asked, rng)) for anchor in anchors] for anchors in documents]


def expected(shape: tuple[float, float], shortest: int, longest: int) -> tuple[float, float]:
    """Mean and standard deviation of ⌊Beta·(longest − shortest) + shortest⌋, from the distribution itself."""
    steps = np.arange(longest - shortest + 1)
    chances = np.diff(stats.beta.cdf(steps / max(longest - shortest, 1), *shape), append=1.0)
    mean = float((chances * (steps + shortest)).sum())
    return mean, float(np.sqrt((chances * (steps + shortest - mean) ** 2).sum()))


def assert_distributed(lengths: np.ndarray, shape: tuple[float, float], shortest: int, longest: int) -> None:
    mean, deviation = expected(shape, shortest, longest)
    assert lengths.mean() == pytest.approx(mean, abs=5 * deviation / len(lengths) ** 0.5)
    assert lengths.std() == pytest.approx(deviation, rel=0.05)
    assert shortest <= lengths.min() < lengths.max() <= longest


def overlap(one: Span, other: Span) -> int:
    return min(one[1], other[1]) - max(one[0], other[0])


asked_for = st.builds(
    lambda anchors, positives, shortest, more, place: SpanSettings(
        anchors, positives, shortest, shortest + more, place=place
    ),
    st.integers(1, 4),
    st.integers(1, 3),
    st.integers(1, 20),
    st.integers(0, 30),
    st.sampled_from(PLACES),
)


# ---- lengths


def test_the_papers_lengths():
    assert expected((4, 2), 32, 512)[0] == pytest.approx(352, abs=0.51)  # 0.5 is lost to the floor
    assert expected((2, 4), 32, 512)[0] == pytest.approx(192, abs=0.51)
    found = drawn(4096, SpanSettings())
    assert_distributed(lengths_of([anchor for document in found for anchor, _ in document]), (4, 2), 32, 512)
    assert_distributed(
        lengths_of([each for document in found for _, positives in document for each in positives]), (2, 4), 32, 512
    )


def test_other_shapes_and_bounds():
    asked = SpanSettings(anchors=3, positives=1, shortest=5, longest=25, anchor_shape=(1, 1), positive_shape=(6, 1.5))
    found = drawn(200, asked)
    assert_distributed(lengths_of([anchor for document in found for anchor, _ in document]), (1, 1), 5, 25)
    assert_distributed(
        lengths_of([each for document in found for _, positives in document for each in positives]), (6, 1.5), 5, 25
    )


def test_equal_bounds_give_one_length():
    found = drawn(200, SpanSettings(shortest=10, longest=10), 50)
    assert {
        end - start for document in found for anchor, positives in document for start, end in (anchor, *positives)
    } == {10}


def test_a_positive_inside_is_bounded_by_its_anchor():
    asked = SpanSettings(positives=DRAWS, shortest=32, longest=512, place="subsumed")
    lengths = lengths_of(sample_positives(4096, (1000, 1100), asked, np.random.default_rng(0)))
    assert_distributed(lengths, (2, 4), 32, 100)


def test_positives_beside_keep_their_lengths_where_there_is_room():
    asked = SpanSettings(positives=DRAWS, place="adjacent")
    lengths = lengths_of(sample_positives(4096, (2000, 2300), asked, np.random.default_rng(0)))
    assert_distributed(lengths, (2, 4), 32, 512)


# ---- places


@settings(max_examples=300, deadline=None)
@given(asked=asked_for, tokens=st.integers(1, 600), seed=st.integers(0, 999))
def test_every_document_gives_all_spans_within_it(asked, tokens, seed):
    rng = np.random.default_rng(seed)
    anchors = sample_anchors(tokens, asked, rng)
    assert len(anchors) == asked.anchors
    shortest, longest = asked.bounds(tokens)
    assert 1 <= shortest <= longest
    for anchor in anchors:
        positives = sample_positives(tokens, anchor, asked, rng)
        assert len(positives) == asked.positives
        for start, end in (anchor, *positives):
            assert 0 <= start < end <= tokens
            assert end - start <= longest
        assert anchor[1] - anchor[0] >= shortest
        if tokens >= asked.whole:
            assert (shortest, longest) == (asked.shortest, asked.longest)


@settings(max_examples=300, deadline=None)
@given(asked=asked_for, extra=st.integers(0, 300), seed=st.integers(0, 999))
def test_anchors_and_their_positives_keep_clear_of_other_anchors(asked, extra, seed):
    tokens = 2 * asked.anchors + extra
    rng = np.random.default_rng(seed)
    anchors = sample_anchors(tokens, asked, rng)
    longest = asked.bounds(tokens)[1]
    assert all(after[0] - before[1] >= longest for before, after in pairwise(anchors))
    for anchor in anchors:
        for positive in sample_positives(tokens, anchor, asked, rng):
            assert all(overlap(positive, other) <= 0 for other in anchors if other != anchor)


@settings(max_examples=300, deadline=None)
@given(asked=asked_for, tokens=st.integers(2, 600), seed=st.integers(0, 999))
def test_a_positive_has_the_place_asked_for(asked, tokens, seed):
    rng = np.random.default_rng(seed)
    for anchor in sample_anchors(tokens, asked, rng):
        for positive in sample_positives(tokens, anchor, asked, rng):
            if asked.place == "subsumed":
                assert anchor[0] <= positive[0] < positive[1] <= anchor[1]
            elif asked.place == "adjacent":
                assert overlap(positive, anchor) == 0  # they touch
            else:
                assert overlap(positive, anchor) >= 0


def test_any_place_is_beside_across_or_inside_and_evenly_so():
    asked = SpanSettings(positives=DRAWS * 5, shortest=4, longest=4)
    starts = Counter(start for start, _ in sample_positives(100, (50, 54), asked, np.random.default_rng(0)))
    assert sorted(starts) == list(range(46, 55))  # from the left neighbour to the right one
    assert all(number / (DRAWS * 5) == pytest.approx(1 / 9, abs=0.012) for number in starts.values())


@pytest.mark.parametrize(
    ("anchor", "expected_starts"), [((1, 5), range(6)), ((95, 99), range(91, 97)), ((0, 4), range(5))]
)
def test_the_ends_of_a_document_bound_the_places(anchor, expected_starts):
    asked = SpanSettings(positives=500, shortest=4, longest=4)
    starts = {start for start, _ in sample_positives(100, anchor, asked, np.random.default_rng(0))}
    assert starts == set(expected_starts)


def test_inside_every_place_is_drawn():
    asked = SpanSettings(positives=500, shortest=4, longest=10, positive_shape=(1, 1e6), place="subsumed")
    assert set(sample_positives(100, (50, 58), asked, np.random.default_rng(0))) == {
        (start, start + 4) for start in range(50, 55)
    }


def test_beside_is_either_side_where_both_have_room():
    asked = SpanSettings(positives=DRAWS, shortest=4, longest=4, place="adjacent")
    for anchor, sides in (
        ((50, 54), {(46, 50), (54, 58)}),
        ((0, 4), {(4, 8)}),
        ((3, 7), {(7, 11)}),
        ((4, 8), {(0, 4), (8, 12)}),
    ):
        found = Counter(sample_positives(100, anchor, asked, np.random.default_rng(0)))
        assert set(found) == sides
        assert all(number / DRAWS == pytest.approx(1 / len(sides), abs=0.04) for number in found.values())
    assert set(sample_positives(100, (96, 100), asked, np.random.default_rng(0))) == {(92, 96)}


def test_beside_is_shorter_where_neither_side_has_room():
    asked = SpanSettings(positives=50, shortest=5, longest=5, place="adjacent", anchors=1)
    assert set(sample_positives(11, (3, 8), asked, np.random.default_rng(0))) == {(0, 3), (8, 11)}
    assert set(sample_positives(5, (0, 5), asked, np.random.default_rng(0))) == {(0, 5)}  # nothing is beside the whole


def test_one_anchor_stands_anywhere_evenly():
    found = Counter(
        anchors[0][0][0] for anchors in drawn(30, SpanSettings(anchors=1, shortest=10, longest=10), DRAWS * 2)
    )
    assert sorted(found) == list(range(21))
    assert all(number / (DRAWS * 2) == pytest.approx(1 / 21, abs=0.012) for number in found.values())


def test_several_anchors_reach_both_ends_of_the_document():
    found = drawn(100, SpanSettings(anchors=3, shortest=5, longest=10), 2000)
    assert min(document[0][0][0] for document in found) == 0
    assert max(document[-1][0][1] for document in found) == 100
    centres = np.array([[sum(anchor) / 2 for anchor, _ in document] for document in found])
    assert centres[:, 1].mean() == pytest.approx(50, abs=1)
    assert centres[:, 0].mean() + centres[:, 2].mean() == pytest.approx(100, abs=2)


# --------------------------------------------------------------------------------------------------------------- short
# documents


def test_short_documents_have_shorter_spans():
    asked = SpanSettings()
    assert asked.whole == 2048
    assert asked.bounds(2048) == (32, 512)
    assert asked.bounds(2047) == (32, 511)
    assert asked.bounds(400) == (32, 100)
    assert asked.bounds(100) == (25, 25)
    assert asked.bounds(1) == (1, 1)
    lengths = lengths_of([anchor for document in drawn(400, asked) for anchor, _ in document])
    assert_distributed(lengths, (4, 2), 32, 100)


def test_they_are_counted():
    asked = SpanSettings(anchors=1, longest=100)
    assert count_short([10, 199, 200, 5000], asked) == 2
    assert count_short(np.array([200, 201]), asked) == 0
    assert count_short([], asked) == 0


def test_fewer_tokens_than_anchors():
    assert sample_anchors(1, SpanSettings(anchors=3), np.random.default_rng(0)) == [(0, 1)] * 3
    assert sample_anchors(3, SpanSettings(anchors=3), np.random.default_rng(0)) == [(0, 1), (1, 2), (2, 3)]


# ---- settings


def test_the_same_chance_gives_the_same_spans():
    first, again, other = (sample_anchors(4096, SpanSettings(), np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert first == again != other
    first, again, other = (
        sample_positives(4096, (9, 99), SpanSettings(), np.random.default_rng(seed)) for seed in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"anchors": 0}, "anchors must be at least 1; 0"),
        ({"positives": 0}, "positives must be at least 1; 0"),
        ({"shortest": 0}, "shortest must be at least 1; 0"),
        ({"shortest": 600}, "longest must be at least shortest, 600; 512"),
        ({"anchor_shape": (0, 1)}, "anchor_shape is the two numbers"),
        ({"anchor_shape": (4.0, 2.0, 1.0)}, "anchor_shape is the two numbers"),
        ({"positive_shape": (2, float("nan"))}, "positive_shape is the two numbers"),
        ({"place": "near"}, "place is one of any, adjacent, subsumed; 'near'"),
    ],
)
def test_settings_that_cannot_work(wrong, message):
    with pytest.raises(InputError, match=message):
        SpanSettings(**wrong)


def test_no_tokens_no_spans():
    with pytest.raises(InputError, match="without tokens"):
        sample_anchors(0, SpanSettings(), np.random.default_rng(0))
    with pytest.raises(InputError, match="without tokens"):
        sample_positives(0, (0, 1), SpanSettings(), np.random.default_rng(0))


@pytest.mark.parametrize("anchor", [(-1, 5), (5, 5), (5, 11)])
def test_an_anchor_from_elsewhere(anchor):
    with pytest.raises(InputError, match="does not lie within 10 tokens"):
        sample_positives(10, anchor, SpanSettings(), np.random.default_rng(0))
