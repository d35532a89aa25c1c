"""An index in a folder, opened for reading: exact search over memory-mapped vectors, block by block.

    dense      q · v over all rows, or over codes of fewer bits with the best re-scored by v
    lexical    BM25; of passages that of the whole text, at the passage that has most of the words

Rows that were deleted or do not pass the filter are no candidates of either ranking, so ``top`` hits come where as many
pass. About a million rows are fine; beyond that use an engine with an approximate index.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError
from isotrope.search.filter_masks import Mask, mask_of
from isotrope.search.index_manifest import Manifest, read_manifest
from isotrope.search.index_place import MANIFEST
from isotrope.search.part_sums import check_parts
from isotrope.search.quantized import QuantizedIndex
from isotrope.search.row_blocks import PREFIX, BlockedRows, RowBlock
from isotrope.search.row_filter import Filter
from isotrope.search.word_index import WordIndex, open_words

if TYPE_CHECKING:
    from isotrope.encoders.token_states import TokenStates

Floats = npt.NDArray[np.float32]
Ranking = list[tuple[int, float]]  # (row, score), the best first
BLOCKS, DELETED, WORDS, WHOLE, CODES, RANGES = "blocks", "deleted", "words", "whole", "codes", "ranges"


class FolderEngine:
    """The rows of a folder and the rankings over them."""

    name = "folder"

    def __init__(self, folder: Path, manifest: Manifest | None = None) -> None:
        self.folder, self._stamp = folder, stamp_of(folder / MANIFEST)
        self.manifest = manifest or read_manifest(folder)
        try:
            listed = [(str(name), int(rows)) for name, rows in self.manifest.parts[BLOCKS]]
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"{folder}: the manifest names no blocks; build the index again.") from error
        self.rows = BlockedRows([RowBlock(folder / BLOCKS / name, rows) for name, rows in listed])

    def current(self) -> FolderEngine:
        """The index as it is now: itself where nothing has changed, or where the index is gone."""
        if stamp_of(self.folder / MANIFEST) in (None, self._stamp):
            return self
        found = FolderEngine(self.folder)
        check_parts(self.folder, found.manifest.sums)
        old, new = ((each.model.fingerprint, each.dimension) for each in (self.manifest, found.manifest))
        if old != new:
            raise InputError(f"{self.folder}: the index was built again with other vectors; open it again.")
        return found

    @cached_property
    def live(self) -> Mask:
        """[rows]: which are not deleted."""
        name = self.manifest.parts.get(DELETED)
        if name is None:
            return np.ones(len(self.rows), dtype=np.bool_)
        deleted = _loaded(self.folder / name)
        if deleted.shape != (len(self.rows),):
            raise InputError(f"{self.folder / name}: not as it was written; remove the index and build it again.")
        return ~deleted.astype(np.bool_)

    @cached_property
    def live_rows(self) -> npt.NDArray[np.int64]:
        return np.flatnonzero(self.live)

    @cached_property
    def words(self) -> WordIndex:
        return self._opened(WORDS, len(self.live_rows))

    @cached_property
    def whole(self) -> WordIndex:
        """The words of whole texts, in an index of passages."""
        return self._opened(WHOLE, 0 if self.owners is None else int(self.owners.max(initial=-1)) + 1)

    def _opened(self, part: str, texts: int) -> WordIndex:
        found = open_words(self.folder / str(self.manifest.parts.get(part)))
        if found.texts != texts:
            raise InputError(f"{self.folder}: the index of words has another length; build the index again.")
        return found

    @cached_property
    def owners(self) -> npt.NDArray[np.int64] | None:
        """[live rows]: the number of the text that each passage is of; None in an index of whole texts."""
        if self.manifest.reading.passages is None:
            return None
        places = np.array([self.rows.column("file"), self.rows.column("line")], dtype=np.int64)[:, self.live_rows]
        return np.cumsum((np.diff(places, prepend=-1) != 0).any(axis=0)) - 1

    @cached_property
    def codes(self) -> QuantizedIndex | None:
        if self.manifest.precision == "float32":
            return None
        ranges, codes = self.manifest.parts.get(RANGES), _loaded(self.folder / str(self.manifest.parts.get(CODES)))
        if len(codes) != len(self.rows):
            raise InputError(f"{self.folder}: the codes are of other rows; remove the index and build it again.")
        return QuantizedIndex.from_codes(
            codes,
            self.manifest.precision,
            self.manifest.dimension,
            None if ranges is None else _loaded(self.folder / ranges),
        )

    def allowed(self, where: Filter | None) -> Mask:
        """[rows]: which may be found."""
        if where is None:
            return self.live
        parts = [mask_of(block.table, where, PREFIX) for block in self.rows.blocks]
        return self.live & (np.concatenate(parts) if parts else np.zeros(0, dtype=np.bool_))

    def dense(self, queries: Floats, top: int, where: Filter | None) -> list[Ranking]:
        allowed = self.allowed(where)
        if self.codes is None:
            return self.exact(queries, top, allowed)
        most = min(top, int(allowed.sum()))
        if not most:
            return [[] for _ in queries]
        rows, scores = self.codes.search(queries, most, vectors=self.rows, allowed=allowed)
        return [_ranked(*pair) for pair in zip(rows, scores, strict=True)]

    def exact(self, queries: Floats, top: int, allowed: Mask) -> list[Ranking]:
        """By the float vectors; one block at a time is in memory."""
        best: list[tuple[npt.NDArray[np.int64], Floats]] = [
            (np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)) for _ in queries
        ]
        start = 0
        for block in self.rows.blocks:
            some = np.flatnonzero(allowed[start : start + len(block)])
            if len(some):
                vectors = np.asarray(block.vectors) if len(some) == len(block) else block.vectors[some]
                compared = queries @ vectors.T
                if not np.isfinite(compared).all():
                    raise InputError(f"{block.folder}: a vector holds NaN or infinity; build the index again.")
                for number, scores in enumerate(compared):
                    best[number] = _merged(best[number], some + start, scores, top)
                del vectors
            block.release()
            start += len(block)
        return [_ranked(rows, scores) for rows, scores in best]

    def lexical(self, queries: Sequence[Sequence[str]], top: int, where: Filter | None) -> list[Ranking]:
        """Queries are words; rows without a shared word are not found."""
        allowed = self.allowed(where)[self.live_rows]
        found = []
        for words in queries:
            scores = np.where(allowed, self.words.scores(words), 0)
            some = np.flatnonzero(scores > 0)
            if self.owners is not None:
                some = some[np.lexsort((-scores[some], self.owners[some]))]
                some = some[np.diff(self.owners[some], prepend=-1) != 0]  # the best passage of each text
                scores = self.whole.scores(words)[self.owners]
            rows, values = _merged((some[:0], scores[:0]), some, scores[some], top)
            found.append(_ranked(self.live_rows[rows], values))
        return found

    def cosines_of(self, query: Floats, rows: Sequence[int]) -> list[float]:
        """By the float vectors, which are read from the disk."""
        found = np.asarray(self.rows[np.asarray(rows)]) @ query
        if not np.isfinite(found).all():
            raise InputError(f"{self.folder}: a vector holds NaN or infinity; build the index again.")
        return [float(cosine) for cosine in found]

    def weights_of(self, query: Sequence[str], rows: Sequence[int]) -> list[float]:
        """BM25 of a query's words; 0 without a shared word."""
        places = np.searchsorted(self.live_rows, rows)
        if self.owners is not None:
            return self.whole.scores_of(query, self.owners[places]).tolist()
        return self.words.scores_of(query, places).tolist()

    def fetch(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """Text, line, file, id, passage and kept columns of some rows."""
        found = []
        for row in rows:
            stored = self.rows.row(row)
            columns = {name: stored.get(f"{PREFIX}{name}") for name in self.manifest.kinds}
            known = {name: stored[name] for name in ("text", "line", "file", "id")}
            found.append({**known, "passage": stored.get("passage"), "columns": columns})
        return found

    def tokens_of(self, row: int) -> TokenStates | None:
        """The token states of a row, in an index that keeps them."""
        block, local = self.rows.place(row)
        return None if block.tokens is None else block.tokens.row(local)

    def close(self) -> None:
        """Nothing is held but memory maps, which go with the object."""


def stamp_of(file: Path) -> tuple[int, int, int] | None:
    """What differs when a file was written again; None where there is none."""
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _merged(
    best: tuple[npt.NDArray[np.int64], Floats], rows: npt.NDArray[np.int64], scores: Floats, top: int
) -> tuple[npt.NDArray[np.int64], Floats]:
    """The best of both, equal scores in the order of the rows."""
    rows, scores = np.concatenate([best[0], rows]), np.concatenate([best[1], scores])
    if len(scores) > 4 * top:  # a sort of all would take most of the time
        least = np.partition(scores, len(scores) - top)[len(scores) - top]
        some = scores >= least
        rows, scores = rows[some], scores[some]
    order = np.argsort(-scores, kind="stable")[:top]
    return rows[order], scores[order]


def _ranked(rows: npt.NDArray[np.int64], scores: Floats) -> Ranking:
    return [(int(row), float(score)) for row, score in zip(rows, scores, strict=True)]


def _loaded(file: Path) -> npt.NDArray[Any]:
    try:
        return np.load(file, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{file}: missing or not as it was written; remove the index and build it again.") from error
