"""Wrong orders of turns: never the right one, the same turns, the same speakers where that can be."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.errors import InputError
from isotrope.views.turns import MISORDERS, draw_window, misorder

dialogues = st.lists(st.sampled_from("abcd"), min_size=2, max_size=9).filter(lambda turns: len(set(turns)) > 1)


@settings(max_examples=300, deadline=None)
@given(turns=dialogues, how=st.sampled_from(MISORDERS), keep=st.booleans(), seed=st.integers(0, 999))
def test_a_wrong_order_is_another_sequence_of_the_same_turns(turns, how, keep, seed):
    order = misorder(turns, np.random.default_rng(seed), how, keep)
    assert sorted(order) == list(range(len(turns)))
    assert [turns[i] for i in order] != turns
    if keep and (len(set(turns[::2])) > 1 or len(set(turns[1::2])) > 1):
        assert all(place % 2 == source % 2 for place, source in enumerate(order))
    if how == "swap":
        assert sum(place != source for place, source in enumerate(order)) == 2


def counted(turns, how, keep, draws=4000):
    rng = np.random.default_rng(0)
    return Counter(tuple(misorder(turns, rng, how, keep).tolist()) for _ in range(draws))


def test_every_order_but_the_right_one_is_as_likely():
    found = counted("abc", "shuffle", False)
    assert len(found) == 5
    assert all(number / 4000 == pytest.approx(1 / 5, abs=0.03) for number in found.values())


def test_speakers_keep_their_places():
    assert set(counted("abcd", "shuffle", True)) == {(2, 1, 0, 3), (0, 3, 2, 1), (2, 3, 0, 1)}
    assert set(counted("abcd", "swap", True)) == {(2, 1, 0, 3), (0, 3, 2, 1)}
    assert set(counted("abcd", "swap", False)) == {(1, 0, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2)}


def test_two_turns_change_places():
    assert set(counted("ab", "shuffle", True, 20)) == set(counted("ab", "swap", True, 20)) == {(1, 0)}


def test_windows_leave_out_greeting_and_farewell_where_they_can():
    rng = np.random.default_rng(0)
    assert {draw_window("abcdefgh", 4, 0, rng) for _ in range(200)} == {range(start, start + 4) for start in (1, 2, 3)}
    assert {draw_window("abcde", 4, 0, rng) for _ in range(50)} == {range(4), range(1, 5)}
    assert draw_window("abc", 4, 0, rng) == range(3)


def test_a_window_holds_something_to_tell_behind_its_context():
    rng = np.random.default_rng(0)
    assert {draw_window("ayyyyyyz", 2, 0, rng) for _ in range(50)} == {
        range(2),
        range(6, 8),
    }  # the inner ones are all the same
    for _ in range(50):
        window = draw_window("abyyyyyz", 4, 1, rng)
        assert len(set("abyyyyyz"[window.start + 1 : window.stop])) > 1


@pytest.mark.parametrize("turns", ["a", "aa", ""])
def test_no_order_to_tell(turns):
    with pytest.raises(InputError, match="no"):
        misorder(turns, np.random.default_rng(0))
    with pytest.raises(InputError, match="in another order"):
        draw_window(turns, 3, 0, np.random.default_rng(0))
