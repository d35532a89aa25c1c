"""Where the loop's batches come from: records of a corpus, dealt out epoch after epoch, their views made ahead.

All random numbers are keyed by what they are for and by (seed, number of the batch, process): nothing depends on what
ran before, so a resumed run repeats an uninterrupted one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Protocol

import numpy as np

from isotrope.data.batches import Rows, batches, epoch_size
from isotrope.data.corpus import Corpus, Records
from isotrope.data.random_streams import Key, keyed_seed
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch
from isotrope.methods.frame.combined import Combined
from isotrope.training.loop_settings import LoopSettings
from isotrope.training.prefetch import prefetched

if TYPE_CHECKING:
    from accelerate import Accelerator

Numbered = Generator[tuple[int, Batch], None, None]


class Feed(Protocol):
    """What the loop asks for."""

    def batches(self, skip: int) -> Numbered:
        """(number, batch) from a number on, without end. Closing it ends its thread."""

    def release(self) -> None:
        """Give back what is mapped into memory."""


def make_batch(combined: Combined, corpus: Corpus, rows: Rows, key: Key, shared: Key) -> Batch:
    """The views of some rows. What they draw is keyed by ``key``, what the loss draws by ``shared``."""
    records = Records(corpus, rows.tolist())
    rng = np.random.default_rng(keyed_seed("views", *key))
    return Batch(combined.views(records, rng), len(records), keyed_seed("loss", *shared))


class CorpusFeed:
    """Rows of a corpus in the method's order of batches; each process makes the views of its own part of a batch."""

    def __init__(
        self, combined: Combined, corpus: Corpus, rows: Rows, settings: LoopSettings, accelerator: Accelerator
    ) -> None:
        self.combined, self.corpus, self.rows = combined, corpus, rows
        self.settings, self.accelerator = settings, accelerator

    @property
    def records(self) -> int:
        """Records that an epoch deals out."""
        return epoch_size(self.combined.method.batches, self.corpus, self.rows)

    def epoch(self, number: int) -> Iterator[Rows]:
        order, size = self.combined.method.batches, self.settings.batch_size
        return batches(order, self.corpus, self.rows, size, self.settings.seed, number)

    def batches(self, skip: int) -> Numbered:
        return prefetched(self.make, self.endless(), skip)

    def release(self) -> None:
        self.corpus.release()

    def endless(self) -> Iterator[Rows]:
        """The batches of one epoch after another."""
        number = 0
        while True:
            empty = True
            for rows in self.epoch(number):
                empty = False
                yield rows
            if empty:
                raise InputError(
                    f"No batch of {self.settings.batch_size} different records can be made of {len(self.rows):,}; "
                    "lower batch_size or bring more data."
                )
            number += 1

    def make(self, number: int, rows: Rows) -> Batch:
        """The views of this process's part of a batch; ``number`` keys what they draw."""
        process, seed = self.accelerator.process_index, self.settings.seed
        size = self.settings.batch_size // self.accelerator.num_processes
        own = rows[process * size : (process + 1) * size]
        batch = make_batch(self.combined, self.corpus, own, (seed, number, process), (seed, number))
        # Copied ahead too, by the thread that makes batches.
        return batch.to(self.accelerator.device) if self.accelerator.device.type == "cuda" else batch
