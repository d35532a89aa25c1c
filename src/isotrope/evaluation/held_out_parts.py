"""The held-out records in two parts: one that checkpoints are chosen by, and one that judges what was chosen.

The best of several scores is a lucky one too: of the records that chose a checkpoint, its figure is a little too good.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus
from isotrope.evaluation.label_free import natural_pairs

FEWEST = 100  # natural pairs of a part: with fewer, neither part would say much


class HeldOutParts(NamedTuple):
    """Both are all of the held-out rows where these are too few to be parted."""

    choosing: Rows
    judging: Rows

    @property
    def apart(self) -> bool:
        return self.choosing is not self.judging


def part_held_out(corpus: Corpus, held: Rows) -> HeldOutParts:
    """Documents stay whole, records with one first text stay together, and no text stands on both sides.

    The parts depend on the records alone, so every process, a resumed run and each run of a comparison have the same.
    """
    together = HeldOutParts(held, held)
    if len(held) > len(corpus) // 2:  # nothing could be hidden: these are the rows that are trained on
        return together
    first = _sides(corpus, held)
    choosing, judging = held[first], held[~first]
    judging = judging[~np.isin(corpus.keys[judging], np.unique(corpus.keys[choosing])).any(axis=1)]
    whole = natural_pairs(corpus, held)
    for part in (choosing, judging):
        found = natural_pairs(corpus, part)
        if found.origin != whole.origin or len(found.first) < FEWEST:
            return together
    return HeldOutParts(choosing, judging)


def _sides(corpus: Corpus, held: Rows) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """True for the first part: every second document, or half of the first texts."""
    if 1 < corpus.counts.documents < len(corpus):  # of pairs, each record is one
        return np.asarray(np.unique(corpus.documents[held], return_inverse=True)[1] % 2 == 0)
    return np.asarray(corpus.keys[held, 0] % 2 == 0)
