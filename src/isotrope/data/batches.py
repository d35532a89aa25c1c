"""How records meet: index batches that every process computes alike and cuts its own slice from.

An order decides which records share a batch, and so which are negatives of each other. Orders are registered by name; a
method that needs another one registers it in its own file and names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from isotrope.data.class_batches import deal_classes
from isotrope.data.corpus import Corpus
from isotrope.data.corpus_files import text_key
from isotrope.data.random_streams import keyed_seed
from isotrope.errors import InputError, nearest

Rows = npt.NDArray[np.int64]  # in file order
Deal = Callable[[Corpus, Rows, int, int, int], Iterator[Rows]]  # corpus, rows, batch size, seed, epoch → batches


@dataclass(frozen=True)
class Order:
    """``deal`` yields the batches of one epoch, the same in every process; ``units`` are the rows that it deals out."""

    deal: Deal
    units: Callable[[Corpus, Rows], Rows]


ORDERS: dict[str, Order] = {}


def all_rows(corpus: Corpus, rows: Rows) -> Rows:
    return rows


def register_order(name: str, units: Callable[[Corpus, Rows], Rows] = all_rows) -> Callable[[Deal], Deal]:
    """Make an order known: ``@register_order("by-length")`` above a function with the arguments of ``Deal``.

    ``units`` says which rows an epoch deals out where that is not every row: the first of each whole document, say.
    """

    def register(deal: Deal) -> Deal:
        if name in ORDERS:
            raise InputError(f"An order of batches named '{name}' is registered already.")
        ORDERS[name] = Order(deal, units)
        return deal

    return register


def find_order(name: str) -> Order:
    if name not in ORDERS:
        raise InputError(f"Unknown order of batches '{name}'{nearest(name, ORDERS)}")
    return ORDERS[name]


def batches(order: str, corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    """The batches of one epoch, ``size`` rows each."""
    return find_order(order).deal(corpus, rows, size, seed, epoch)


def epoch_size(order: str, corpus: Corpus, rows: Rows) -> int:
    """How many records an epoch deals out; documents, where they are dealt whole."""
    return len(find_order(order).units(corpus, rows))


def whole_documents(corpus: Corpus, rows: Rows) -> Rows:
    """The first row of every document that ``rows`` hold to the last sentence."""
    starts, ends = borders(corpus)
    held = np.searchsorted(rows, ends) - np.searchsorted(rows, starts)
    return starts[held == ends - starts]


def borders(corpus: Corpus) -> tuple[Rows, Rows]:
    """First rows of the documents, and the rows behind their last."""
    starts = np.asarray(corpus.starts)
    return starts, np.append(starts[1:], len(corpus))


@register_order("unique")
def unique(corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    """Shuffled batches in which no text stands twice: a repeated text would be a false negative of itself.

    A record that clashes waits for the next batch. Records that fill no whole batch at the end of the epoch are left
    out.
    """
    return _without_repeats(rows, size, seed, epoch, corpus.text_keys)


@register_order("consecutive")
def consecutive(corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    """Neighbours stay neighbours: runs of ``size`` records in file order, the runs shuffled.

    A run goes on from one document to the next; ``Records.documents`` and ``Records.positions`` say who is a neighbour.
    What fills no whole run stands at the end of the file in the first epoch and elsewhere in later ones, so that all
    have their turn.
    """
    runs, rest = divmod(len(rows), size)
    first = epoch % (rest + 1)
    for run in _rng(seed, epoch).permutation(runs):
        yield rows[first + run * size : first + (run + 1) * size]


@register_order("by-document", units=whole_documents)
def by_document(corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    """Like ``unique``, but of whole documents: a row stands for the document that begins with it.

    ``Records.whole`` and ``Records.joined`` give the document.
    """

    def content(row: int) -> set[int]:
        document = corpus.document(row)
        return {text_key(corpus.keys[document.start : document.stop].tobytes())}

    return _without_repeats(whole_documents(corpus, rows), size, seed, epoch, content)


@register_order("by-class")
def by_class(corpus: Corpus, rows: Rows, size: int, seed: int, epoch: int) -> Iterator[Rows]:
    """Shuffled batches in which a record has company of its class, and at least one other class is there.

    Records that fill no whole batch at the end of the epoch are left out.
    """
    labels = corpus.numbers("label")[rows]
    for places in deal_classes(labels, size, _rng(seed, epoch)):
        yield rows[places]


def _rng(seed: int, epoch: int) -> np.random.Generator:
    return np.random.default_rng(keyed_seed("order", seed, epoch))


def _without_repeats(rows: Rows, size: int, seed: int, epoch: int, texts: Callable[[int], set[int]]) -> Iterator[Rows]:
    order = np.arange(len(rows), dtype=np.int32)  # places among the rows; shuffled where they stand: four bytes a row
    _rng(seed, epoch).shuffle(order)
    waiting: dict[int, list[int]] = {}  # by the text they clashed on: however often it repeats, one look a batch
    position = 0
    while True:
        batch = _Distinct(texts, waiting)
        for key in list(waiting):
            if len(batch.rows) == size:
                break
            row = waiting[key].pop()
            if not waiting[key]:
                del waiting[key]
            batch.place(row)
        while len(batch.rows) < size and position < len(order):
            batch.place(int(rows[order[position]]))
            position += 1
        if len(batch.rows) < size:
            return  # the order is used up, and what is left fills no whole batch
        yield np.array(batch.rows, dtype=np.int64)


class _Distinct:
    """A batch that grows by rows whose texts it does not have; the others join those that wait."""

    def __init__(self, texts: Callable[[int], set[int]], waiting: dict[int, list[int]]) -> None:
        self.texts, self.waiting = texts, waiting
        self.rows: list[int] = []
        self.seen: set[int] = set()

    def place(self, row: int) -> None:
        keys = self.texts(row)
        clash = keys & self.seen
        if clash:
            self.waiting.setdefault(min(clash), []).append(row)
            return
        self.seen.update(keys)
        self.rows.append(row)
