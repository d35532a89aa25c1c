"""Near-duplicates: against all pairs compared one by one, and the promises of a group."""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pytest

from isotrope.data import near_duplicates, shingles
from isotrope.data.near_duplicates import jaccard, near_groups, near_pairs, signatures_of
from isotrope.data.shingles import WIDTH, ShingleSets, shingle_sets, split_words


def sets_of(texts: Iterable[list[str]]) -> ShingleSets:
    return shingle_sets(" ".join(words) for words in texts)


def naive(first: list[str], second: list[str]) -> float:
    """Jaccard similarity of two texts, from the words themselves."""
    one, two = ({tuple(words[i : i + WIDTH]) for i in range(max(1, len(words) - 2))} for words in (first, second))
    return len(one & two) / len(one | two)


@pytest.fixture(scope="module")
def texts() -> list[list[str]]:
    """Families of texts: an original and copies in which some words at either end or inside are others."""
    rng = random.Random(0)
    found = []
    for family in range(60):
        original = [f"w{rng.randrange(400)}" for _ in range(rng.randrange(5, 60))]
        found.append(original)
        for copy in range(rng.randrange(4)):
            changed = list(original)
            for _ in range(rng.randrange(1, 4)):
                changed[rng.choice([0, -1, rng.randrange(len(changed))])] = f"x{family}{copy}"
            found.append(changed)
    rng.shuffle(found)
    return found


@pytest.fixture(scope="module")
def sets(texts: list[list[str]]) -> ShingleSets:
    return sets_of(texts)


def expected_pairs(texts: list[list[str]]) -> set[tuple[int, int]]:
    return {(a, b) for a in range(len(texts)) for b in range(a) if naive(texts[a], texts[b]) >= 0.8}


def test_the_pairs_are_those_that_all_comparisons_give(texts: list[list[str]], sets: ShingleSets) -> None:
    wanted = expected_pairs(texts)
    assert len(wanted) > 20
    assert {tuple(pair) for pair in near_pairs(sets).tolist()} == wanted


def test_the_similarity_is_exact(texts: list[list[str]], sets: ShingleSets) -> None:
    pairs = np.array([(a, b) for a in range(0, len(texts), 3) for b in range(0, len(texts), 5)])
    wanted = [naive(texts[a], texts[b]) for a, b in pairs.tolist()]
    np.testing.assert_allclose(jaccard(sets, sets, pairs), wanted, rtol=0, atol=1e-12)


def test_references_are_another_text(texts: list[list[str]], sets: ShingleSets) -> None:
    half = len(texts) // 2
    first, second = sets_of(texts[:half]), sets_of(texts[half:])
    wanted = {(a, b - half) for b, a in expected_pairs(texts) if a < half <= b}
    assert wanted
    assert {tuple(pair) for pair in near_pairs(first, second).tolist()} == wanted


def test_signatures_estimate_the_similarity(sets: ShingleSets) -> None:
    """A hash function picks the same smallest shingle with probability J; over 64 of them, within five deviations."""
    pairs = near_pairs(sets)
    signatures = signatures_of(sets)
    agreement = (signatures[pairs[:, 0]] == signatures[pairs[:, 1]]).mean(axis=1)
    similar = jaccard(sets, sets, pairs)
    assert np.all(np.abs(agreement - similar) < 5 * np.sqrt(0.25 / 64))
    assert abs((agreement - similar).mean()) < 0.05


def test_a_group_is_the_first_text_and_what_is_near_it(texts: list[list[str]], sets: ShingleSets) -> None:
    groups = near_groups(sets)
    near = expected_pairs(texts)
    for text, first in enumerate(groups.tolist()):
        assert first == text or ((text, first) in near and groups[first] == first)
    members = [np.flatnonzero(groups == first) for first in np.unique(groups)]
    assert max(map(len, members)) > 2
    assert all(naive(texts[a], texts[b]) >= 0.6 for group in members for a in group for b in group)
    for text, first in near:  # nobody stays alone next to a first one
        assert groups[first] != first or groups[text] != text


def test_a_bucket_of_very_many_is_one_group_at_the_price_of_few_comparisons(monkeypatch: pytest.MonkeyPatch) -> None:
    form = [f"word{number}" for number in range(40)]
    compared = []

    def counted(sets: ShingleSets, others: ShingleSets, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        compared.append(len(pairs))
        return jaccard(sets, others, pairs)

    monkeypatch.setattr(near_duplicates, "jaccard", counted)
    groups = near_groups(sets_of([*form, f"name{number}"] for number in range(500)))
    assert groups.tolist() == [0] * 500
    assert sum(compared) <= 500 * near_duplicates.FIRST * near_duplicates.BANDS


def test_one_word_at_the_end_of_eleven() -> None:
    """The borders that the docstring names."""
    assert [near(count, count - 1) for count in (10, 11)] == [False, True]
    assert [near(count, count // 2) for count in (28, 29)] == [False, True]


def near(count: int, place: int) -> bool:
    words = [f"w{number}" for number in range(count)]
    return len(near_pairs(sets_of([words, [*words[:place], "other", *words[place + 1 :]]]))) == 1


def test_shingles_are_those_of_a_set_of_words(texts: list[list[str]], sets: ShingleSets) -> None:
    assert sets.sizes.tolist() == [len({tuple(t[i : i + WIDTH]) for i in range(len(t) - 2)}) for t in texts]
    for row in range(len(sets)):
        values = sets.values[sets.starts[row] : sets.starts[row + 1]]
        assert np.all(values[1:] > values[:-1])


def test_blocks_and_very_long_texts_change_nothing(
    texts: list[list[str]], sets: ShingleSets, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shingles, "BLOCK", 7)
    again = sets_of(texts)
    assert again.starts.tolist() == sets.starts.tolist()
    assert again.values.tolist() == sets.values.tolist()
    long = [f"w{number}" for number in range(5000)]
    assert sets_of([long, long[:1500]]).sizes.tolist() == [shingles.MOST, shingles.MOST]


def test_short_texts_and_scripts_without_blanks() -> None:
    assert shingle_sets(["yes", "", "oh yes", "yes oh", " ".join("w" * 50)]).sizes.tolist() == [1] * 5
    assert near_groups(shingle_sets(["yes", "", "oh yes", "yes oh", "oh yes"])).tolist() == [0, 1, 2, 3, 2]
    assert split_words("我喜欢 bert") == ["我", "喜", "欢", "bert"]
    assert near_groups(shingle_sets([])).tolist() == []
    chinese = "今天天气很好我们一起去公园散步然后回家吃饭"
    assert near_groups(shingle_sets([chinese, chinese[:-1] + "水"])).tolist() == [0, 0]
