"""Near copies: exactly those of a loop over all pairs."""

from __future__ import annotations

import numpy as np

from isotrope.data.near_copies import NearCopies


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
