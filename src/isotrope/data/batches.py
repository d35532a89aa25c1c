"""How records meet: index batches that every process computes alike and cuts its own slice from."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from isotrope.data.corpus import Corpus
from isotrope.errors import InputError, nearest

Rows = npt.NDArray[np.int64]


def unique(corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    """Shuffled batches in which no text stands twice: a repeated text would be a false negative of itself.

    A record that clashes waits for the next batch. Records that fill no whole batch at the end of the epoch are left out.
    """
    order = rows[np.random.default_rng([seed, epoch]).permutation(np.arange(len(rows), dtype=np.int32))]
    waiting: dict[int, list[int]] = {}  # by the text they clashed on: however often it repeats, one look a batch
    position = 0
    while True:
        batch: list[int] = []
        seen: set[int] = set()
        for key in list(waiting):
            if len(batch) == size:
                break
            row = waiting[key].pop()
            if not waiting[key]:
                del waiting[key]
            _place(corpus, row, batch, seen, waiting)
        while len(batch) < size and position < len(order):
            _place(corpus, int(order[position]), batch, seen, waiting)
            position += 1
        if len(batch) < size:
            return  # the order is used up, and what is left fills no whole batch
        yield np.array(batch, dtype=np.int64)


def consecutive(corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    """Neighbours stay neighbours: runs of ``size`` records in file order, the runs shuffled."""
    runs = len(rows) // size
    for run in np.random.default_rng([seed, epoch]).permutation(runs):
        yield rows[run * size : (run + 1) * size]


ORDERS = {"unique": unique, "consecutive": consecutive}


def batches(order: str, corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    if order not in ORDERS:
        raise InputError(f"No way of batching is called '{order}'{nearest(order, ORDERS)}.")
    return ORDERS[order](corpus, rows, size, seed, epoch)


def hold_out(corpus: Corpus, count: int, seed: int) -> tuple[Rows, Rows]:
    """(rows to train on, rows kept aside): at most about ``count`` records, in whole documents where there are some.

    No text stands on both sides: a record drawn to be kept aside that shares a text with the rest is left out of both. A small corpus
    keeps a tenth aside; where fewer than 20 records could be kept, none are.
    """
    total = len(corpus)
    nothing = np.arange(total, dtype=np.int64), np.empty(0, dtype=np.int64)
    count = min(count, total // 10)
    drawn = _draw_documents(corpus, count, seed)
    if len(drawn) < count // 2:
        drawn = _draw_rows(total, count, seed)
    rest = np.delete(nothing[0], drawn)
    texts = np.unique(corpus.keys[drawn])
    shared = np.zeros(len(texts), dtype=bool)
    for start, end in _blocks(len(rest)):
        shared |= np.isin(texts, corpus.keys[rest[start:end]])
    aside = drawn[~np.isin(corpus.keys[drawn], texts[shared]).any(axis=1)]
    return (rest, aside) if len(aside) >= 20 else nothing


def _draw_documents(corpus: Corpus, count: int, seed: int) -> Rows:
    """Rows of documents taken in random order until ``count`` is reached; a document too long for what is left is passed over."""
    if not 1 < corpus.counts.documents < 1_000_000:
        return np.empty(0, dtype=np.int64)
    starts = np.flatnonzero(np.diff(corpus.documents, prepend=corpus.documents[0] - 1))
    ends = np.append(starts[1:], len(corpus))
    taken: list[Rows] = []
    left = count
    for document in np.argsort(_dice(np.arange(len(starts)), seed), kind="stable"):
        size = int(ends[document] - starts[document])
        if size <= left:
            taken.append(np.arange(starts[document], ends[document]))
            left -= size
        if left <= 0:
            break
    return np.sort(np.concatenate(taken)) if taken else np.empty(0, dtype=np.int64)


def _draw_rows(total: int, count: int, seed: int) -> Rows:
    share = count / max(total, 1)
    return np.concatenate([start + np.flatnonzero(_dice(np.arange(start, end), seed) < share) for start, end in _blocks(total)])


def _blocks(total: int, size: int = 1 << 18) -> list[tuple[int, int]]:
    return [(start, min(start + size, total)) for start in range(0, total, size)]


def _dice(numbers: npt.NDArray[np.int64], seed: int) -> npt.NDArray[np.float64]:
    """A number in [0, 1) for each, the same in every process (the finaliser of SplitMix64)."""
    x = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64((seed * 0xD1B54A32D192ED03 + 1) % 2**64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (x ^ (x >> np.uint64(31))).astype(np.float64) / 2.0**64


def _place(corpus: Corpus, row: int, batch: list[int], seen: set[int], waiting: dict[int, list[int]]) -> None:
    keys = set(corpus.keys[row].tolist())
    clash = keys & seen
    if clash:
        waiting.setdefault(min(clash), []).append(row)
        return
    seen |= keys
    batch.append(row)
