"""The rows of an index on disk, in blocks of a few thousand: each a folder that is whole or absent.

    vectors.npy     float32 [rows, d], unit vectors, memory-mapped
    rows.arrow      text, line, file, id, key, cut, passage, and the kept columns as "c:NAME", memory-mapped
    token_*         where token states are kept for re-ranking (stored_tokens.py)
    probe.npz       where fewer dimensions or bits are measured: the best rows of the probes in this block

A build that is killed leaves whole blocks behind, and goes on after them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError
from isotrope.files import written_folder
from isotrope.search.index_rows import IndexRow

if TYPE_CHECKING:
    from isotrope.encoders.token_states import TokenStates
    from isotrope.search.stored_tokens import BlockTokens

ROWS = 4096  # in a block
PREFIX = "c:"  # before the name of a kept column
VECTORS, TABLE, PROBE, ENDS = "vectors.npy", "rows.arrow", "probe.npz", "token_ends.npy"
Floats = npt.NDArray[np.float32]
TYPES = {"text": "string", "json": "string", "boolean": "bool_"}


def key_of(text: str) -> int:
    """64 bits by which equal texts are found; whoever finds one compares the texts."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def write_block(
    folder: Path,
    rows: Sequence[IndexRow],
    vectors: Floats,
    kinds: Mapping[str, str],
    first_file: int = 0,
    probe: Mapping[str, Any] | None = None,
    cut: npt.NDArray[np.bool_] | None = None,
    tokens: Iterable[TokenStates] | None = None,
) -> None:
    """``first_file`` is added to the number of a row's source: rows that are added have sources of their own. ``cut``
    [rows] says whose text is longer than the model reads; ``tokens`` are kept for re-ranking."""
    import pyarrow

    arrays = {
        "text": pyarrow.array([row.text for row in rows], pyarrow.large_string()),
        "line": pyarrow.array([row.line for row in rows], pyarrow.int64()),
        "file": pyarrow.array([row.file + first_file for row in rows], pyarrow.int32()),
        "id": pyarrow.array([row.id for row in rows], pyarrow.string()),
        "key": pyarrow.array([key_of(row.text) for row in rows], pyarrow.uint64()),
    }
    if cut is not None:
        arrays["cut"] = pyarrow.array(cut)
    if any(row.passage is not None for row in rows):
        arrays["passage"] = pyarrow.array([row.passage for row in rows], pyarrow.list_(pyarrow.int32(), 4))
    for name, kind in kinds.items():
        values = [row.values.get(name) for row in rows]
        whole = all(value is None or isinstance(value, int) for value in values)
        numbers = pyarrow.int64() if whole else pyarrow.float64()
        chosen = numbers if kind == "number" else getattr(pyarrow, TYPES[kind])()
        arrays[f"{PREFIX}{name}"] = pyarrow.array(values, chosen)
    table = pyarrow.table(arrays)
    with written_folder(folder) as temporary:
        np.save(temporary / VECTORS, np.ascontiguousarray(vectors, dtype=np.float32))
        with pyarrow.ipc.new_file(str(temporary / TABLE), table.schema) as target:
            target.write_table(table)
        if tokens is not None:
            from isotrope.search.stored_tokens import write_tokens

            write_tokens(temporary, tokens)
        if probe is not None:
            np.savez(temporary / PROBE, **probe)


class RowBlock:
    """A block, opened when it is first asked for something."""

    def __init__(self, folder: Path, rows: int) -> None:
        self.folder, self.rows = folder, rows

    def __len__(self) -> int:
        return self.rows

    @cached_property
    def vectors(self) -> Floats:
        try:
            found = np.load(self.folder / VECTORS, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise self._damaged(VECTORS) from error
        if found.ndim != 2 or len(found) != self.rows or found.dtype != np.float32:
            raise self._damaged(VECTORS)
        return found

    @cached_property
    def table(self) -> Any:
        import pyarrow

        try:
            with pyarrow.memory_map(str(self.folder / TABLE)) as source:
                found = pyarrow.ipc.open_file(source).read_all()
        except (OSError, pyarrow.ArrowException) as error:
            raise self._damaged(TABLE) from error
        if found.num_rows != self.rows:
            raise self._damaged(TABLE)
        return found

    @cached_property
    def tokens(self) -> BlockTokens | None:
        """The token states, where they are kept."""
        if not (self.folder / ENDS).is_file():
            return None
        from isotrope.search.stored_tokens import BlockTokens

        try:
            return BlockTokens(self.folder, self.rows)
        except (OSError, ValueError, EOFError) as error:
            raise self._damaged(ENDS) from error

    def release(self) -> None:
        """Give the maps back: pages that were looked at count as memory of the process for as long as a map lasts."""
        for name in ("vectors", "table", "tokens"):
            vars(self).pop(name, None)

    def probe(self) -> dict[str, Any] | None:
        try:
            with np.load(self.folder / PROBE, allow_pickle=False) as found:
                return dict(found)
        except OSError:
            return None

    def _damaged(self, name: str) -> InputError:
        return InputError(
            f"{self.folder / name}: the file is missing or not as it was written; remove the index and build it again."
        )


class BlockedRows:
    """The blocks of an index as one: row r is a row of one of them."""

    def __init__(self, blocks: Sequence[RowBlock]) -> None:
        self.blocks = list(blocks)
        self.ends = np.cumsum([len(block) for block in self.blocks], dtype=np.int64)

    def __len__(self) -> int:
        return int(self.ends[-1]) if len(self.ends) else 0

    def place(self, row: int) -> tuple[RowBlock, int]:
        number = int(np.searchsorted(self.ends, row, side="right"))
        return self.blocks[number], row - (int(self.ends[number - 1]) if number else 0)

    def __getitem__(self, rows: npt.NDArray[np.int64]) -> Floats:
        """Vectors of some rows, read from the disk."""
        found = [self.place(int(row)) for row in rows]
        return np.stack([np.asarray(block.vectors)[local] for block, local in found])  # a slice of a memmap is slow

    def column(self, name: str) -> list[Any]:
        """A whole column, in order."""
        return [value for block in self.blocks for value in block.table.column(name).to_pylist()]

    def cut(self) -> npt.NDArray[np.bool_] | None:
        """[rows]: which texts are longer than the model reads; None where a block does not say."""
        found = []
        for block in self.blocks:
            if "cut" not in block.table.column_names:
                return None
            found.append(np.array(block.table.column("cut").to_numpy(), dtype=np.bool_))
            block.release()
        return np.concatenate(found)

    def row(self, number: int) -> dict[str, Any]:
        block, local = self.place(number)
        return block.table.slice(local, 1).to_pylist()[0]
