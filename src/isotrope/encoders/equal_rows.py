"""Texts with the same token ids: computed once on a CPU, whatever their letters were.

A tokenizer that lowers letters or drops accents gives one row of ids for several texts, and texts that are cut may
agree in all that is read. Their vectors are then the same bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.tokens.padded import Lengths

Rows = npt.NDArray[np.int64]


class EqualRows:
    """``firsts``: the number of the first text of each different row, in the order of the texts."""

    def __init__(self, flat: npt.NDArray[Any], lengths: Lengths, room: int) -> None:
        """``flat`` are the ids of all texts behind one another; of each no more than ``room`` are read."""
        content, size = flat.tobytes(), flat.itemsize
        places: dict[bytes, int] = {}
        ends = np.cumsum(lengths)
        starts, stops = (ends - lengths) * size, (ends - lengths + np.minimum(lengths, max(room, 0))) * size
        spans = zip(starts.tolist(), stops.tolist(), strict=True)
        own = np.fromiter(
            (places.setdefault(content[start:stop], len(places)) for start, stop in spans), np.int64, len(lengths)
        )
        self.firsts: Rows = np.unique(own, return_index=True)[1].astype(np.int64)
        self._order: Rows = np.argsort(own, kind="stable")
        self._counts = np.bincount(own, minlength=len(self.firsts))
        self._begins = np.cumsum(self._counts) - self._counts

    def texts(self, rows: Rows) -> tuple[Rows, Rows]:
        """The numbers of all texts of some of the different rows, and for each its place in ``rows``."""
        counts = self._counts[rows]
        place = np.repeat(np.arange(len(rows)), counts)
        inside = np.arange(len(place)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self._order[self._begins[rows][place] + inside], place
