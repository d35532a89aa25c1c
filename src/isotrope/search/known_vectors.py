"""Vectors that an index has already: a text that is known is not encoded again."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from isotrope.search.row_blocks import BlockedRows, key_of

Floats = npt.NDArray[np.float32]


class KnownVectors:
    """The texts of some blocks by their keys; a key that fits is checked against the text itself."""

    def __init__(self, rows: BlockedRows | None) -> None:
        self.rows = rows
        keys = [np.asarray(block.table.column("key").to_numpy()) for block in rows.blocks] if rows is not None else []
        every = np.concatenate(keys) if keys else np.empty(0, dtype=np.uint64)
        self.order = np.argsort(every, kind="stable")
        self.sorted = every[self.order]

    def find(self, text: str) -> int | None:
        """The row of a text, or None."""
        key = np.uint64(key_of(text))
        place = int(np.searchsorted(self.sorted, key))
        while self.rows is not None and place < len(self.sorted) and self.sorted[place] == key:
            row = int(self.order[place])
            block, local = self.rows.place(row)
            if block.table.column("text")[local].as_py() == text:
                return row
            place += 1
        return None

    def vectors(self, texts: Sequence[str], encode: Callable[[list[str]], Floats]) -> tuple[Floats, int]:
        """[texts, d], of which ``encode`` makes those that are new, and how many these were; equal texts once."""
        found = [self.find(text) for text in texts]
        new = list(dict.fromkeys(text for text, row in zip(texts, found, strict=True) if row is None))
        made = encode(new) if new else None
        places = {text: number for number, text in enumerate(new)}
        rows = [
            self._stored(row) if row is not None else _made(made, places[text])
            for text, row in zip(texts, found, strict=True)
        ]
        return np.stack(rows), sum(row is None for row in found)

    def _stored(self, row: int) -> Floats:
        assert self.rows is not None
        block, local = self.rows.place(row)
        return np.asarray(block.vectors[local])


def _made(made: Floats | None, place: int) -> Floats:
    assert made is not None
    return made[place]
