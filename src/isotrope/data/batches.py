"""How records meet: index batches that every process computes alike and cuts its own slice from."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from isotrope.data.corpus import Corpus
from isotrope.data.corpus_files import text_key
from isotrope.errors import InputError, nearest

Rows = npt.NDArray[np.int64]  # in file order
LOOK_AHEAD = 64  # how many classes are asked for one that fills a batch to the last place


def unique(corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    """Shuffled batches in which no text stands twice: a repeated text would be a false negative of itself.

    A record that clashes waits for the next batch. Records that fill no whole batch at the end of the epoch are left
    out.
    """
    return _without_repeats(rows, size, seed, epoch, lambda row: set(corpus.keys[row].tolist()))


def by_document(corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    """As ``unique``, of whole documents:

    a row stands for the document that begins with it (``Records.whole``, ``Records.joined``).
    """

    def content(row: int) -> set[int]:
        document = corpus.document(row)
        return {text_key(corpus.keys[document.start : document.stop].tobytes())}

    return _without_repeats(whole_documents(corpus, rows), size, seed, epoch, content)


def consecutive(corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    """Neighbours stay neighbours: runs of ``size`` records in file order, the runs shuffled.

    A run goes on from one document to the next; ``Records.documents`` and ``Records.positions`` tell who is a
    neighbour. What fills no whole run stands at the end of the file in the first epoch and elsewhere in later ones, so
    that all have their turn.
    """
    runs, rest = divmod(len(rows), size)
    first = epoch % (rest + 1)
    for run in np.random.default_rng([seed, epoch]).permutation(runs):
        yield rows[first + run * size : first + (run + 1) * size]


def by_class(corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    """Shuffled batches in which a record has company of its class, its positives, and at least one other class, its
    negatives.

    A record is alone only where its class has no other, or where the classes do not come out even. Records that fill no
    whole batch at the end of the epoch are left out.
    """
    rng = np.random.default_rng([seed, epoch])
    labels = corpus.numbers("label")[rows]
    order = rng.permutation(np.arange(len(rows), dtype=np.int32))
    order = order[np.argsort(labels[order], kind="stable")]  # class after class, shuffled within each
    left = np.bincount(labels)
    ends = np.cumsum(left)
    # A class is called once for every two of its records.
    calls = rng.permutation(np.repeat(np.arange(len(left), dtype=np.int32), np.maximum(left // 2, left > 0)))
    position = 0
    waiting: deque[int] = deque()  # called when they did not fit; first in the next batch
    last: deque[int] = deque()  # classes with records that no call is left for
    while True:
        batch: list[int] = []
        present: set[int] = set()
        passed: deque[int] = deque()
        while len(batch) < size:
            room = size - len(batch)
            if (waiting or position < len(calls)) and len(passed) < LOOK_AHEAD:
                if waiting:
                    label = waiting.popleft()
                else:
                    label, position = int(calls[position]), position + 1
                take = _company(int(left[label]), room)
                if take == room and present == {label}:
                    take = 0
                if not take and left[label]:
                    passed.append(label)
            elif passed or last:  # nothing fits
                label = (passed or last).popleft()
                take = min(int(left[label]), room, 3)
                if left[label] > take:
                    last.append(label)
            else:
                return
            start = ends[label] - left[label]
            batch.extend(rows[order[start : start + take]].tolist())
            left[label] -= take
            if take:
                present.add(label)
        waiting.extendleft(reversed(passed))
        yield np.array(batch, dtype=np.int64)


def _company(left: int, room: int) -> int:
    """How many of a class's records to take:

    two, or three, so that neither one record nor room for one is left over; 0: it cannot be.
    """
    for take in (2, 3) if left > 1 else (1,):
        if take <= left and take <= room and left - take != 1 and room - take != 1:
            return take
    return 0


ORDERS = {"unique": unique, "consecutive": consecutive, "by-document": by_document, "by-class": by_class}


def batches(order: str, corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    if order not in ORDERS:
        raise InputError(f"No way of batching is called '{order}'{nearest(order, ORDERS)}")
    return ORDERS[order](corpus, rows, size, seed, epoch)


def epoch_size(order: str, corpus: Corpus, rows: Rows) -> int:
    """How many records an order deals out: documents, where it deals them whole."""
    return len(whole_documents(corpus, rows)) if order == "by-document" else len(rows)


def whole_documents(corpus: Corpus, rows: Rows) -> Rows:
    """The first row of every document that ``rows`` hold to the last sentence."""
    starts, ends = borders(corpus)
    held = np.searchsorted(rows, ends) - np.searchsorted(rows, starts)
    return starts[held == ends - starts]


def borders(corpus: Corpus) -> tuple[Rows, Rows]:
    """First rows of the documents, and the rows behind their last."""
    starts = np.asarray(corpus.starts)
    return starts, np.append(starts[1:], len(corpus))


def _without_repeats(rows: Rows, size: int, seed: int, epoch: int, texts: Callable[[int], set[int]]) -> Iterator[Rows]:
    order = rows[np.random.default_rng([seed, epoch]).permutation(np.arange(len(rows), dtype=np.int32))]
    waiting: dict[int, list[int]] = {}  # by the text they clashed on: however often it repeats, one look a batch
    position = 0

    def place(row: int) -> None:
        keys = texts(row)
        clash = keys & seen
        if clash:
            waiting.setdefault(min(clash), []).append(row)
            return
        seen.update(keys)
        batch.append(row)

    while True:
        batch: list[int] = []
        seen: set[int] = set()
        for key in list(waiting):
            if len(batch) == size:
                break
            row = waiting[key].pop()
            if not waiting[key]:
                del waiting[key]
            place(row)
        while len(batch) < size and position < len(order):
            place(int(order[position]))
            position += 1
        if len(batch) < size:
            return  # the order is used up, and what is left fills no whole batch
        yield np.array(batch, dtype=np.int64)
