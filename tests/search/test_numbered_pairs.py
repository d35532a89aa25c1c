"""Pairs as numbers, against sets and dictionaries of the texts themselves."""

from __future__ import annotations

import tracemalloc

from hypothesis import given
from hypothesis import strategies as st

from isotrope.data.record_types import Record
from isotrope.search.numbered_pairs import number_pairs

text = st.sampled_from(["", "a", "b", "c", "d", "e"])


def record(anchor: str, positive: str) -> Record:
    return Record((anchor, positive), None, 0, 1)


@given(st.lists(st.tuples(text, text), max_size=30))
def test_numbers_say_what_the_texts_say(pairs: list[tuple[str, str]]) -> None:
    found = number_pairs(record(*pair) for pair in pairs)
    whole = [pair for pair in pairs if all(pair)]
    kept = list(dict.fromkeys(whole))
    texts = found.texts
    assert [(texts[a], texts[p]) for a, p in zip(found.anchors, found.positives, strict=True)] == kept
    assert (found.read, found.empty, found.duplicates) == (
        len(pairs),
        len(pairs) - len(whole),
        len(whole) - len(kept),
    )
    assert texts == list(dict.fromkeys([p for _, p in kept] + [a for a, _ in kept]))
    assert found.pool == len({p for _, p in kept})
    assert [texts[a] for a in found.different_anchors()] == list(dict.fromkeys(a for a, _ in kept))
    for number, one in enumerate(texts):
        partners = {p for a, p in kept if a == one} | {a for a, p in kept if p == one}
        assert sorted(texts[other] for other in found.partners(number)) == sorted(partners)
        assert found.places(number).tolist() == [place for place, (a, _) in enumerate(kept) if a == one]
    if texts:
        assert found.most_partners(found.different_anchors()) == max(
            len(found.partners(anchor)) for anchor in found.different_anchors()
        )


def test_a_pair_takes_fewer_bytes_than_a_vector_of_256_numbers() -> None:
    """Each line here is a text of two pairs: what is kept of a pair is its text and a few numbers."""

    def kept(count: int) -> int:
        tracemalloc.start()
        found = number_pairs(record(f"text number {line}", f"text number {line + 1}") for line in range(count))
        found.partners(0), found.places(0)
        size = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
        return size

    assert (kept(20_000) - kept(10_000)) / 10_000 < 256
