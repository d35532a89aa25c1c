"""Token states of the rows of an index, kept so that re-ranking need not read the texts again: a byte a dimension.

    q = round(127 · x / max|x|),   x ≈ q / |q|

x is a unit vector, so q needs no scale of its own. A block has three files: the states [tokens, width] and the tokens
themselves, one row after the other, and where each row ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isotrope.encoders.token_states import TokenStates
from isotrope.search.row_blocks import ENDS

STATES, IDS = "token_states.bin", "token_ids.bin"


def write_tokens(folder: Path, rows: Iterable[TokenStates]) -> None:
    """One row at a time is in memory."""
    sizes = []
    with open(folder / STATES, "wb") as states, open(folder / IDS, "wb") as ids:
        for row in rows:
            states.write(in_bytes(row.states).tobytes())
            ids.write(row.ids.astype("<i4").tobytes())
            sizes.append(len(row.ids))
    np.save(folder / ENDS, np.cumsum(sizes, dtype=np.int64))


def in_bytes(states: npt.NDArray[np.floating]) -> npt.NDArray[np.int8]:
    """[tokens, width] as whole numbers from −127 to 127."""
    largest = np.abs(states.astype(np.float32)).max(axis=1, keepdims=True, initial=0)
    return np.asarray(np.rint(127 * states / np.maximum(largest, 1e-12)), dtype=np.int8)


class BlockTokens:
    """The files of a block, memory-mapped."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.ends: npt.NDArray[np.int64] = np.load(folder / ENDS, allow_pickle=False)
        total = int(self.ends[-1]) if len(self.ends) else 0
        if len(self.ends) != rows:
            raise ValueError(f"{len(self.ends)} rows, not {rows}")
        if not total:  # an empty file cannot be mapped
            self.ids, self.states = np.zeros(0, dtype=np.int32), np.zeros((0, 1), dtype=np.int8)
            return
        self.ids = np.memmap(folder / IDS, dtype="<i4", mode="r", shape=(total,))
        self.states = np.memmap(folder / STATES, dtype=np.int8, mode="r").reshape(total, -1)

    def row(self, number: int) -> TokenStates:
        part = slice(int(self.ends[number - 1]) if number else 0, int(self.ends[number]))
        codes = np.asarray(self.states[part]).astype(np.float32)
        unit = codes / np.maximum(np.linalg.norm(codes, axis=1, keepdims=True), 1e-12)
        return TokenStates(np.array(self.ids[part], dtype=np.int32), unit.astype(np.float16))
