"""Near copies: exactly those of a loop over all pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.data.near_copies import NearCopies

word_sets = st.lists(st.sampled_from([f"w{number}" for number in range(14)]), max_size=14)


def test_nothing_is_missed_and_nothing_made_up() -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"w{number}" for number in range(30)])
    keys = [" ".join(rng.choice(words, rng.integers(3, 12))) for _ in range(150)]
    copies = NearCopies(keys)
    hits = 0
    for _ in range(200):
        given = keys[rng.integers(150)].split()
        given[rng.integers(len(given))] = str(rng.choice([*words, "unknown"]))
        given += [str(rng.choice(words))] * int(rng.integers(2))
        sets = {key: {*key.split()} for key in keys}
        expected = {key for key, one in sets.items() if len(one & {*given}) >= 0.8 * len(one | {*given})}
        assert set(copies.found_in(given)) == expected
        hits += len(expected)
    assert hits > 50


def test_order_and_repeats_do_not_count_and_no_words_match_nothing() -> None:
    copies = NearCopies(["a b c d e", "f g h"])
    assert copies.found_in("e d c b a a".split()) == ["a b c d e"]
    assert copies.found_in("a b c d".split()) == ["a b c d e"]  # 4 of 5
    assert copies.found_in("a b c".split()) == []
    assert copies.found_in([]) == []
    assert NearCopies([]).found_in(["a"]) == []


@settings(max_examples=300, deadline=None)
@given(keys=st.lists(word_sets, max_size=10), given_words=word_sets, similar=st.sampled_from([0.5, 0.7, 0.8, 0.9, 1.0]))
def test_any_sets_of_words_agree_with_a_loop(keys: list[list[str]], given_words: list[str], similar: float) -> None:
    """Words that no key has (those of ``unknown``) are in the union, and shared with none."""
    for given_too in (given_words, [*given_words, "unknown"]):
        wanted = {*given_too}
        expected = {
            " ".join(key) for key in keys if key and wanted and len(wanted & {*key}) >= similar * len(wanted | {*key})
        }
        assert set(NearCopies(map(" ".join, keys), similar).found_in(given_too)) == expected
