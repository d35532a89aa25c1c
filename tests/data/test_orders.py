"""Batches by class and by document, and neighbours: nothing twice, nothing lost, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from isotrope.data.batches import ORDERS, Rows, batches, epoch_size, register_order, whole_documents
from isotrope.data.corpus import Corpus, Records
from isotrope.errors import InputError


def labelled(labels: Any) -> Any:
    """As much of a corpus as batching by class looks at."""
    found = np.asarray(labels, dtype=np.int32)
    return SimpleNamespace(numbers=lambda value: found)


def of_sizes(sizes: list[int]) -> np.ndarray[Any, Any]:
    return np.repeat(np.arange(len(sizes)), sizes)


def by_class(labels: Any, size: int, seed: int = 0, epoch: int = 0, rows: Rows | None = None) -> list[Rows]:
    rows = np.arange(len(labels)) if rows is None else rows
    return list(batches("by-class", labelled(labels), rows, size, seed, epoch))


def lonely(labels: Any, found: list[Rows]) -> int:
    """Records without another of their class in the batch."""
    return sum(list(Counter(labels[batch].tolist()).values()).count(1) for batch in found)


# ---- by class


@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=30).filter(any),
    size=st.integers(1, 17),
    seed=st.integers(0, 3),
    epoch=st.integers(0, 3),
)
@example(sizes=[3] * 12, size=4, seed=0, epoch=0)
@example(sizes=[2] * 12, size=5, seed=0, epoch=0)
@example(sizes=[1] * 30, size=2, seed=0, epoch=0)
@example(sizes=[99, 1], size=10, seed=0, epoch=0)
@settings(deadline=None, max_examples=300)
def test_batches_are_full_and_all_records_are_used_once_as_far_as_they_go(
    sizes: list[int], size: int, seed: int, epoch: int
) -> None:
    labels = of_sizes(sizes)
    found = by_class(labels, size, seed, epoch)
    assert all(len(batch) == size for batch in found)
    used = [row for batch in found for row in batch.tolist()]
    assert len(used) == len(set(used))
    assert len(labels) - len(used) < size


@given(pairs=st.lists(st.integers(1, 6), min_size=2, max_size=40), half=st.integers(1, 16), seed=st.integers(0, 3))
@settings(deadline=None)
def test_where_the_classes_come_out_even_nobody_is_alone(pairs: list[int], half: int, seed: int) -> None:
    labels = of_sizes([2 * count for count in pairs])
    assert lonely(labels, by_class(labels, 2 * half, seed)) == 0


@pytest.mark.parametrize("size", [6, 15, 16, 63, 64])
@pytest.mark.parametrize("seed", range(3))
def test_odd_classes_and_odd_batches_leave_hardly_anybody_alone(size: int, seed: int) -> None:
    sizes = np.random.default_rng(seed).integers(2, 40, size=150)
    labels = of_sizes(sizes.tolist())
    assert lonely(labels, by_class(labels, size, seed)) <= 3


def test_a_class_of_one_has_its_turn_somewhere_in_the_epoch() -> None:
    labels = of_sizes([1] * 40 + [20] * 40)
    found = by_class(labels, 20)
    places = [number for number, batch in enumerate(found) for row in batch if row < 40]
    assert len(places) == 40
    assert len(set(places)) > len(found) // 4  # not all at the end
    assert lonely(labels, found) == 40


@pytest.mark.parametrize(("sizes", "size"), [([500, 500], 4), ([500, 500], 7), ([800, 200], 16), ([10] * 100, 4)])
def test_a_batch_holds_more_than_one_class(sizes: list[int], size: int) -> None:
    labels = of_sizes(sizes)
    found = by_class(labels, size)
    alike = [number for number, batch in enumerate(found) if len(set(labels[batch].tolist())) == 1]
    assert len(alike) <= len(found) // 20


def test_classes_mix_in_proportion_and_in_random_order() -> None:
    labels = of_sizes([600, 200, 200])
    found = by_class(labels, 50)
    shares = np.array([np.bincount(labels[batch], minlength=3) for batch in found])
    assert (abs(shares.mean(axis=0) - [30, 10, 10]) < 1).all()
    assert len({tuple(sorted(batch.tolist())) for batch in found}) == 20
    assert np.concatenate(found).tolist() != sorted(np.concatenate(found).tolist())


def test_only_the_given_rows_are_dealt_out() -> None:
    rows = np.arange(1, 300, 3)
    used = np.concatenate(by_class(of_sizes([100, 200]), 10, rows=rows))
    assert set(used.tolist()) == set(rows.tolist())


def test_a_huge_class_beside_small_ones_is_dealt_out_whole() -> None:
    found = by_class(of_sizes([30_000, 3, 3, 3]), 64)
    assert len(found) == 30_009 // 64


def test_records_without_labels_cannot_be_dealt_by_class(opened: Any) -> None:
    with pytest.raises(InputError, match="sentences carry no label; bring labelled or labelled-pairs"):
        list(batches("by-class", opened(["a", "b"], "sentences"), np.arange(2), 2, 0, 0))


# ---- by document


@pytest.fixture
def documents(opened: Any) -> Corpus:
    return opened([[f"sentence {i} of document {d}" for i in range(1 + d % 5)] for d in range(103)], "documents")


def test_every_document_has_its_turn_given_by_its_first_row(documents: Corpus) -> None:
    rows = np.arange(len(documents))
    found = list(batches("by-document", documents, rows, 10, 0, 0))
    assert [len(batch) for batch in found] == [10] * 10
    used = np.concatenate(found)
    assert len(set(used.tolist())) == 100
    assert set(used.tolist()) <= set(documents.starts.tolist())
    assert used.tolist() != sorted(used.tolist())
    assert epoch_size("by-document", documents, rows) == 103
    assert epoch_size("unique", documents, rows) == len(documents)


def test_a_document_that_misses_a_row_is_not_dealt_out(documents: Corpus) -> None:
    rows = np.delete(np.arange(len(documents)), [3, 4, int(documents.starts[-1])])  # of documents 2 and 102
    assert set(whole_documents(documents, rows).tolist()) == set(documents.starts.tolist()) - {
        3,
        int(documents.starts[-1]),
    }
    used = np.concatenate(list(batches("by-document", documents, rows, 1, 0, 0)))
    assert sorted(used.tolist()) == whole_documents(documents, rows).tolist()


def test_copies_of_a_document_never_meet_and_a_shared_beginning_does_no_harm(opened: Any) -> None:
    lists = [["Hello.", f"Talk {d % 40}."] for d in range(80)]
    corpus = opened(lists, "dialogues")
    found = list(batches("by-document", corpus, np.arange(160), 10, 0, 0))
    assert len(np.unique(np.concatenate(found))) >= 70
    for batch in found:
        ends = [whole.texts()[1] for whole in Records(corpus, batch.tolist()).whole()]
        assert len(set(ends)) == 10


def test_a_batch_reads_its_own_documents_and_no_others(documents: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = next(iter(batches("by-document", documents, np.arange(len(documents)), 8, 0, 0)))
    asked: list[int] = []
    read = Corpus.text

    def noted(self: Corpus, row: int, field: str = "") -> str:
        asked.append(row)
        return read(self, row, field)

    monkeypatch.setattr(Corpus, "text", noted)
    texts = [whole.texts() for whole in Records(documents, batch.tolist()).whole()]
    assert len(asked) == sum(map(len, texts)) == sum(len(documents.document(row)) for row in batch.tolist())


# ---- consecutive


def test_a_method_can_tell_neighbours_from_those_of_the_next_document_and_from_gaps(documents: Corpus) -> None:
    rows = np.delete(np.arange(len(documents)), [20, 21, 50, 77])
    checked = 0
    for batch in batches("consecutive", documents, rows, 16, 0, 0):
        records = Records(documents, batch.tolist())
        near = (np.diff(records.positions()) == 1) & (np.diff(records.documents()) == 0)
        words = [text.split() for text in records.texts()]
        truly = [a[3:] == b[3:] and int(a[1]) + 1 == int(b[1]) for a, b in pairwise(words)]
        assert near.tolist() == truly
        checked += near.sum()
    assert checked > 100


def test_the_rest_that_fills_no_run_changes_from_epoch_to_epoch() -> None:
    used = [
        set(np.concatenate(list(batches("consecutive", None, np.arange(103), 10, 0, epoch))).tolist())
        for epoch in range(4)
    ]  # type: ignore[arg-type]
    assert all(len(each) == 100 for each in used)
    assert set.union(*used) == set(range(103))


# ---- all of them


@pytest.fixture
def talks(opened: Any) -> Any:
    """A corpus that every order can deal out."""
    corpus = opened([[f"sentence {i} of document {d}" for i in range(5)] for d in range(60)], "documents")
    corpus.numbers = lambda value: (np.arange(300) * 7 % 11).astype(np.int32)
    return corpus


@pytest.mark.parametrize("order", ORDERS)
def test_the_same_seed_and_epoch_give_the_same_batches_and_others_do_not(talks: Any, order: str) -> None:
    def deal(seed: int, epoch: int) -> list[list[int]]:
        return [batch.tolist() for batch in batches(order, talks, np.arange(300), 6, seed, epoch)]

    assert deal(3, 2) == deal(3, 2)
    others = [deal(3, 1), deal(2, 2), deal(2, 3)]
    assert deal(3, 2) not in others


@pytest.mark.parametrize("order", ORDERS)
def test_batches_come_as_numbers_of_rows(talks: Any, order: str) -> None:
    for batch in batches(order, talks, np.arange(300), 6, 0, 0):
        assert (batch.shape, batch.dtype) == ((6,), np.int64)


@pytest.mark.parametrize("order", ORDERS)
def test_too_few_records_give_no_batch(talks: Any, order: str) -> None:
    assert list(batches(order, talks, np.arange(5), 6, 0, 0)) == []
    assert list(batches(order, talks, np.empty(0, dtype=np.int64), 6, 0, 0)) == []


def test_a_method_can_bring_an_order_of_its_own(opened: Callable[..., Corpus], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotrope.data.batches.ORDERS", dict(ORDERS))

    @register_order("backwards", units=lambda corpus, rows: rows[1:])
    def backwards(corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
        yield rows[::-1][:size]

    corpus, rows = opened(["a", "b", "c"], "sentences"), np.arange(3)
    assert [batch.tolist() for batch in batches("backwards", corpus, rows, 2, 0, 0)] == [[2, 1]]
    assert epoch_size("backwards", corpus, rows) == 2
    with pytest.raises(InputError, match="named 'backwards' is registered already"):
        register_order("backwards")(backwards)
