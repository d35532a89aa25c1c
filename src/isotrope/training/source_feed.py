"""Batches of several sources: each batch is of one source, and the sources take turns by their shares.

One source a batch, so that no negative can be recognised by its genre. To have several sources in one update,
accumulate gradients.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from isotrope.data.batches import Rows
from isotrope.data.source_turns import turns
from isotrope.methods.frame.batch import Batch
from isotrope.training.feeds import CorpusFeed, Numbered
from isotrope.training.prefetch import prefetched
from isotrope.training.source_list import about

Turn = tuple[int, Rows]  # the number of the source, and the rows of its next batch


class SourcesFeed:
    """Each source goes through its own epochs, however many batches the others have had."""

    def __init__(self, names: Sequence[str], feeds: Sequence[CorpusFeed], shares: Sequence[float]) -> None:
        self.names, self.feeds, self.shares = names, feeds, shares

    def batches(self, skip: int) -> Numbered:
        return prefetched(self._make, self._turns(), skip)

    def release(self) -> None:
        for feed in self.feeds:
            feed.release()

    def _turns(self) -> Iterator[Turn]:
        streams = [feed.endless() for feed in self.feeds]
        for source in turns(self.shares):
            with about(self.names[source]):
                rows = next(streams[source])
            yield source, rows

    def _make(self, number: int, turn: Turn) -> Batch:
        source, rows = turn
        return replace(self.feeds[source].make(number, rows), source=source)
