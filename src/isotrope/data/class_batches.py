"""Batches in which a record has company of its class: its positives, and at least one other class, its negatives."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

LOOK_AHEAD = 64  # how many classes are asked for one that fills a batch to the last place
Places = npt.NDArray[np.int64]


def deal_classes(labels: npt.NDArray[np.integer], size: int, rng: np.random.Generator) -> Iterator[Places]:
    """Places of ``labels`` in batches of ``size``, every class in twos and threes.

    A record is alone only where its class has no other, or where the classes do not come out even. What fills no whole
    batch at the end is left out.
    """
    deck = _Deck(labels, rng)
    while (batch := deck.batch(size)) is not None:
        yield np.array(batch, dtype=np.int64)


class _Deck:
    """What is left of each class, and which class is called next."""

    def __init__(self, labels: npt.NDArray[np.integer], rng: np.random.Generator) -> None:
        order = rng.permutation(np.arange(len(labels), dtype=np.int32))
        self.order = order[np.argsort(labels[order], kind="stable")]  # class after class, shuffled within each
        self.left = np.bincount(labels)
        self.ends = np.cumsum(self.left)
        # A class is called once for every two of its records.
        times = np.maximum(self.left // 2, self.left > 0)
        self.calls = rng.permutation(np.repeat(np.arange(len(self.left), dtype=np.int32), times))
        self.position = 0
        self.waiting: deque[int] = deque()  # called when they did not fit; first in the next batch
        self.last: deque[int] = deque()  # classes with records that no call is left for

    def batch(self, size: int) -> list[int] | None:
        """The next whole batch, or None when there is none."""
        batch: list[int] = []
        present: set[int] = set()
        passed: deque[int] = deque()
        while len(batch) < size:
            room = size - len(batch)
            if (self.waiting or self.position < len(self.calls)) and len(passed) < LOOK_AHEAD:
                label = self._call()
                take = _company(int(self.left[label]), room)
                if take == room and present == {label}:
                    take = 0
                if not take and self.left[label]:
                    passed.append(label)
            elif passed or self.last:  # nothing fits
                label = (passed or self.last).popleft()
                take = min(int(self.left[label]), room, 3)
                if self.left[label] > take:
                    self.last.append(label)
            else:
                return None
            batch += self._take(label, take)
            if take:
                present.add(label)
        self.waiting.extendleft(reversed(passed))
        return batch

    def _call(self) -> int:
        if self.waiting:
            return self.waiting.popleft()
        self.position += 1
        return int(self.calls[self.position - 1])

    def _take(self, label: int, count: int) -> list[int]:
        start = self.ends[label] - self.left[label]
        self.left[label] -= count
        taken: list[int] = self.order[start : start + count].tolist()
        return taken


def _company(left: int, room: int) -> int:
    """How many records of a class to take: two or three, so that neither one record nor room for one is left over.

    0: it cannot be.
    """
    for take in (2, 3) if left > 1 else (1,):
        if take <= left and take <= room and left - take != 1 and room - take != 1:
            return take
    return 0
