"""How records meet: no text twice in a batch, nothing lost that fits, the same order for the same seed."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.data.batches import Rows, batches
from isotrope.data.held_out import hold_out
from isotrope.data.record_types import record_type_named
from isotrope.errors import InputError


def corpus_of(texts: Any, documents: Any = None) -> Any:
    """As much of a corpus as batching looks at: small numbers stand for texts, one row a record."""
    keys = np.array(texts, dtype=np.uint64).reshape(len(texts), -1)
    documents = np.arange(len(keys)) if documents is None else np.asarray(documents)
    starts = np.unique(documents, return_index=True)[1]

    class Stub(SimpleNamespace):
        def __len__(self) -> int:
            return len(self.keys)

        def text_keys(self, row: int) -> set[int]:
            return set(self.keys[row].tolist())

        def release(self) -> None:
            pass

    counts = SimpleNamespace(documents=len(starts))
    return Stub(
        keys=keys,
        documents=documents.astype(np.int64),
        starts=starts,
        counts=counts,
        record_type=record_type_named("sentences"),
    )


def unique_batches(corpus: Any, size: int, seed: int = 0, epoch: int = 0, rows: Rows | None = None) -> list[Rows]:
    rows = np.arange(len(corpus), dtype=np.int64) if rows is None else rows
    return list(batches("unique", corpus, rows, size, seed, epoch))


def texts_stand_once(corpus: Any, batch: Rows) -> bool:
    """A record may hold one text in two fields; two records may not share any."""
    found = [key for row in batch for key in set(corpus.keys[row].tolist())]
    return len(found) == len(set(found))


# ---- unique


few_texts = st.integers(0, 5)
one_field = st.lists(st.tuples(few_texts), min_size=1, max_size=60)
three_fields = st.lists(st.tuples(st.integers(0, 15), st.integers(0, 15), st.integers(0, 15)), min_size=1, max_size=60)


@given(
    texts=st.one_of(one_field, three_fields), size=st.integers(1, 6), seed=st.integers(0, 3), epoch=st.integers(0, 3)
)
@settings(deadline=None)
def test_batches_are_full_and_hold_no_text_and_no_record_twice(texts: Any, size: int, seed: int, epoch: int) -> None:
    corpus = corpus_of(texts)
    found = unique_batches(corpus, size, seed, epoch)
    assert all(len(batch) == size for batch in found)
    assert all(texts_stand_once(corpus, batch) for batch in found)
    used = Counter(row for batch in found for row in batch.tolist())
    assert set(used.values()) <= {1}
    assert set(used) <= set(range(len(texts)))


@given(texts=one_field, size=st.integers(1, 6), seed=st.integers(0, 3))
@settings(deadline=None)
def test_what_is_left_of_single_texts_fills_no_batch(texts: Any, size: int, seed: int) -> None:
    used = {row for batch in unique_batches(corpus_of(texts), size, seed) for row in batch.tolist()}
    left = {texts[row] for row in range(len(texts)) if row not in used}
    assert len(left) < size


def test_waiting_records_are_still_used_when_the_order_has_run_out() -> None:
    # The first triple shares a text with each of the next three, the last with none. Where first and last meet, three
    # are left
    # that go together, whether they came before the last one or wait when it ends the order.
    corpus = corpus_of([(0, 1, 2), (0, 3, 4), (1, 5, 6), (2, 7, 8), (9, 10, 11)])
    found = [unique_batches(corpus, 2, seed) for seed in range(40)]
    first_meets_last = [each for each in found if set(each[0].tolist()) == {0, 4}]
    assert len(first_meets_last) > 3
    assert all(len(each) == 2 for each in first_meets_last)


def test_without_duplicates_only_the_last_part_batch_is_left_out() -> None:
    found = unique_batches(corpus_of(np.arange(103)), 10)
    assert len(found) == 10
    assert len(set(np.concatenate(found).tolist())) == 100


def test_the_same_seed_and_epoch_give_the_same_batches() -> None:
    corpus = corpus_of(np.arange(200) % 70)
    again = [np.concatenate(unique_batches(corpus, 8, seed=3, epoch=2)).tolist() for _ in range(2)]
    assert again[0] == again[1]


@pytest.mark.parametrize("other", [{"seed": 3, "epoch": 1}, {"seed": 2, "epoch": 2}, {"seed": 2, "epoch": 3}])
def test_another_seed_or_epoch_gives_another_order(other: dict[str, int]) -> None:
    corpus = corpus_of(np.arange(200))
    assert (
        np.concatenate(unique_batches(corpus, 8, seed=3, epoch=2)).tolist()
        != np.concatenate(unique_batches(corpus, 8, **other)).tolist()
    )


def test_the_order_is_shuffled_and_every_record_has_its_turn() -> None:
    corpus = corpus_of(np.arange(64))
    order = np.concatenate(unique_batches(corpus, 8)).tolist()
    assert order != sorted(order)
    assert sorted(order) == list(range(64))


def test_only_the_given_rows_are_used() -> None:
    rows = np.arange(1, 100, 3)
    assert set(np.concatenate(unique_batches(corpus_of(np.arange(100)), 4, rows=rows)).tolist()) <= set(rows.tolist())


def test_a_corpus_half_of_one_line_loses_only_what_cannot_fit() -> None:
    total, size = 20_000, 64
    texts = np.arange(total)
    texts[::2] = 0  # the same line ten thousand times
    found = unique_batches(corpus_of(texts), size)
    used = np.concatenate(found)
    assert len(np.unique(used)) == len(used)
    assert total // 2 - np.count_nonzero(texts[used]) < size  # of the other lines, less than a batch is left
    assert (
        np.count_nonzero(texts[used] == 0) >= len(found) - 1
    )  # the line stands in every batch it can, but for an unlucky first


def test_fewer_different_texts_than_a_batch_give_none() -> None:
    assert unique_batches(corpus_of(np.arange(100) % 7), 8) == []


def test_no_rows_give_no_batches() -> None:
    assert unique_batches(corpus_of(np.arange(10)), 4, rows=np.empty(0, dtype=np.int64)) == []


# ---- consecutive


def test_neighbours_stay_neighbours_and_their_runs_are_shuffled() -> None:
    found = [batch.tolist() for batch in batches("consecutive", corpus_of(np.arange(103)), np.arange(103), 10, 0, 0)]
    assert all(batch == list(range(batch[0], batch[0] + 10)) for batch in found)
    starts = [batch[0] for batch in found]
    assert starts != sorted(starts)
    assert sorted(starts) == list(range(0, 100, 10))


def test_an_unknown_order_is_named_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"'uniqe'; did you mean 'unique'"):
        batches("uniqe", corpus_of([1]), np.arange(1), 1, 0, 0)


# ---- hold_out


@given(chance=st.integers(0, 10_000), seed=st.integers(0, 50))
@settings(deadline=None, max_examples=40)
def test_no_text_stands_on_both_sides_in_whichever_field(chance: int, seed: int) -> None:
    corpus = corpus_of(np.random.default_rng(chance).integers(0, 6000, size=(500, 2)))
    train, held = hold_out(corpus, 50, seed)
    assert 20 <= len(held) <= 50
    assert not set(corpus.keys[train].ravel().tolist()) & set(corpus.keys[held].ravel().tolist())
    assert not set(train.tolist()) & set(held.tolist())


@pytest.mark.parametrize("seed", range(5))
def test_documents_are_held_out_whole(seed: int) -> None:
    documents = np.arange(2000) // 8
    train, held = hold_out(corpus_of(np.arange(2000), documents), 200, seed)
    assert len(held)
    assert not set(documents[train].tolist()) & set(documents[held].tolist())
    assert sorted([*train.tolist(), *held.tolist()]) == list(range(2000))


@pytest.mark.parametrize(("total", "count", "about"), [(20_000, 500, 500), (20_000, 10_000, 2000), (20_000, 0, 0)])
def test_about_as_many_are_kept_as_asked_and_never_much_over_a_tenth(total: int, count: int, about: int) -> None:
    kept = [len(hold_out(corpus_of(np.arange(total)), count, seed)[1]) for seed in range(5)]
    assert all(abs(found - about) <= 0.2 * about for found in kept)


def test_the_same_seed_holds_out_the_same_rows_and_another_does_not() -> None:
    corpus = corpus_of(np.arange(1000))
    first, again, other = (hold_out(corpus, 100, seed)[1].tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_file_of_few_documents_is_held_out_by_line() -> None:
    # One document for the whole file is what a plain list of sentences looks like.
    train, held = hold_out(corpus_of(np.arange(1000), np.zeros(1000)), 100, 0)
    assert 50 < len(held) < 150
    assert len(train) == 1000 - len(held)


def test_a_very_small_corpus_keeps_everything_for_training() -> None:
    train, held = hold_out(corpus_of(np.arange(39)), 10, 0)
    assert (len(train), len(held)) == (39, 0)


def test_pairs_over_few_anchors_still_leave_something_to_train_on() -> None:
    # Every anchor stands in a hundred pairs: five of them would be held out, and nobody is judged by five.
    train, held = hold_out(corpus_of([(i % 50, 1000 + i) for i in range(5000)]), 500, 0)
    assert (len(train), len(held)) == (5000, 0)


@pytest.mark.parametrize("seed", range(5))
def test_questions_with_several_answers_each_are_held_out_with_all_of_them(seed: int) -> None:
    pairs = [(i // 6, 1000 + i) for i in range(1800)]  # of a tenth of the rows hardly one has all of its question's
    train, held = hold_out(corpus_of(pairs), 512, seed)
    asked = [{pairs[row][0] for row in rows} for rows in (train, held)]
    assert not asked[0] & asked[1]
    assert 170 <= len(held) <= 180
    assert len(train) + 180 == 1800


def test_a_line_that_fills_half_the_file_costs_training_no_more_than_what_was_drawn() -> None:
    train, held = hold_out(corpus_of([0 if i % 2 else i for i in range(20_000)]), 500, 0)
    assert len(train) >= 19_400
    assert 200 < len(held) < 300


@pytest.mark.parametrize("seed", range(20))
def test_a_few_long_documents_are_held_out_to_the_number_asked_for(seed: int) -> None:
    _, held = hold_out(corpus_of(np.arange(1000), np.arange(1000) // 40), 100, seed)
    assert len(held) == 80
