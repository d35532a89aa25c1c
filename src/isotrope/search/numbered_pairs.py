"""Pairs of texts as numbers: every text is held once, and all else is arrays of a few bytes a pair."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from isotrope.data.record_types import Record

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class NumberedPairs:
    """Different pairs in the order of the file. The first ``pool`` of the ``texts`` are the positives."""

    texts: list[str]
    pool: int
    anchors: Numbers
    positives: Numbers
    read: int
    empty: int  # a side without text

    def __len__(self) -> int:
        return len(self.anchors)

    @property
    def duplicates(self) -> int:
        return self.read - self.empty - len(self)

    def different_anchors(self) -> Numbers:
        """Each once, as they come in the file."""
        return _first_seen(self.anchors)

    def partners(self, text: int) -> Numbers:
        """Positives of a text, and anchors that it is a positive of; each once."""
        edges, starts = self._edges
        return edges[starts[text] : starts[text + 1]] % len(self.texts)

    def most_partners(self, texts: Numbers) -> int:
        _, starts = self._edges
        return int((starts[texts + 1] - starts[texts]).max())

    def places(self, anchor: int) -> Numbers:
        """The pairs of an anchor."""
        order, starts = self._by_anchor
        return order[starts[anchor] : starts[anchor + 1]]

    @cached_property
    def _edges(self) -> tuple[Numbers, Numbers]:
        count = len(self.texts)
        edges = np.concatenate([self.anchors * count + self.positives, self.positives * count + self.anchors])
        edges = np.unique(edges)
        return edges, np.searchsorted(edges, np.arange(count + 1) * count)

    @cached_property
    def _by_anchor(self) -> tuple[Numbers, Numbers]:
        order = np.argsort(self.anchors, kind="stable")
        return order, np.searchsorted(self.anchors[order], np.arange(len(self.texts) + 1))


def number_pairs(records: Iterable[Record]) -> NumberedPairs:
    """Read pairs one by one; those with an empty side are counted, and repeated ones taken once."""
    numbers: dict[str, int] = {}
    found = array("i")
    read = empty = 0
    for record in records:
        read += 1
        if not all(record.texts):
            empty += 1
            continue
        found.extend(numbers.setdefault(text, len(numbers)) for text in record.texts)
    pairs = np.frombuffer(found, dtype=np.intc).reshape(-1, 2).astype(np.int64)
    _, places = np.unique(pairs[:, 0] * len(numbers) + pairs[:, 1], return_index=True)
    pairs = pairs[np.sort(places)]
    order = _first_seen(np.concatenate([pairs[:, 1], pairs[:, 0]]))
    renumbered = np.empty(len(numbers), dtype=np.int64)
    renumbered[order] = np.arange(len(order))
    listed = list(numbers)
    texts = [listed[number] for number in order]
    return NumberedPairs(
        texts, len(np.unique(pairs[:, 1])), renumbered[pairs[:, 0]], renumbered[pairs[:, 1]], read, empty
    )


def _first_seen(numbers: Numbers) -> Numbers:
    """Each number once, in the order in which they come."""
    found, places = np.unique(numbers, return_index=True)
    return found[np.argsort(places)]
