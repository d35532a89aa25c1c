"""Exact search over vectors in fewer bits, and float re-scoring of the best candidates.

    candidates   the ``rescore`` · top texts with the largest q · v̂ (int8) or the most equal bits (binary)
    then         of these, the top by q · v, v the float vector

Only the codes stay in memory. ``vectors`` for re-scoring may be a memory map (``np.load(…, mmap_mode="r")``): a query
reads its few candidates from the disk. Without them int8 is ranked by its own values, binary by q · (its bits as ±1),
as sentence-transformers does. Siblings: ``FolderEngine`` keeps codes and float vectors on disk, and texts with them.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from isotrope.encoders.precision import SCALAR, Floats, Ranges, check_precision, quantize, ranges_of, scale_of
from isotrope.errors import InputError

BLOCK = 65_536  # codes that are compared at once
RESCORE = 4
Rows = npt.NDArray[np.int64]


class RowsOfFloats(Protocol):
    """Float vectors by their rows: an array, a memory map, or the blocks of an index."""

    def __getitem__(self, rows: Any, /) -> Any: ...


class QuantizedIndex:
    """Codes of unit vectors [n, d], and what is needed to compare a float query with them."""

    def __init__(self, vectors: Floats, precision: str = "int8", ranges: Ranges | None = None) -> None:
        if check_precision(precision) == "float32":
            raise InputError("An index of float32 has no codes; precision is int8, uint8, binary or ubinary here.")
        self.precision, self.width = precision, vectors.shape[1]
        self.ranges = (ranges_of(vectors) if ranges is None else ranges) if precision in SCALAR else None
        self.codes = quantize(vectors, precision, self.ranges)

    @classmethod
    def from_codes(
        cls, codes: npt.NDArray[Any], precision: str, width: int, ranges: Ranges | None = None
    ) -> QuantizedIndex:
        """Of codes that were made before, such as a memory map; int8 needs the ranges that they were made with."""
        check_precision(precision)
        expected = width if precision in SCALAR else -(-width // 8)
        if codes.ndim != 2 or codes.shape[1] != expected or (ranges is None) == (precision in SCALAR):
            raise InputError(f"Codes of shape {list(codes.shape)} are no {precision} codes of {width} dimensions.")
        made = cls.__new__(cls)
        made.precision, made.width, made.ranges, made.codes = precision, width, ranges, codes
        return made

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return int(self.codes.nbytes + (0 if self.ranges is None else self.ranges.nbytes))

    def search(
        self,
        queries: Floats,
        top: int = 10,
        rescore: int = RESCORE,
        vectors: RowsOfFloats | None = None,
        allowed: npt.NDArray[np.bool_] | None = None,
    ) -> tuple[Rows, Floats]:
        """Rows and scores, [queries, top], the best first; equal scores keep the order of the rows.

        ``allowed`` [n] says which rows may be found.
        """
        if top < 1 or rescore < 1:
            raise InputError(f"top and rescore must be at least 1; {top} and {rescore} were given.")
        if queries.ndim != 2 or queries.shape[1] != self.width:
            raise InputError(f"Queries are [n, {self.width}]; an array of shape {list(queries.shape)} was given.")
        most = len(self) if allowed is None else int(allowed.sum())
        rows = self.candidates(queries, min(top * rescore, most), allowed)
        scores = np.stack([self._scores(query, row, vectors) for query, row in zip(queries, rows, strict=True)])
        order = np.argsort(-scores, axis=1, kind="stable")[:, :top]
        return np.take_along_axis(rows, order, axis=1), np.take_along_axis(scores, order, axis=1)

    def candidates(self, queries: Floats, count: int, allowed: npt.NDArray[np.bool_] | None = None) -> Rows:
        """[queries, count]: rows by their codes alone, in the order of the rows."""
        scores = np.concatenate(
            [self._compared(queries, self.codes[start : start + BLOCK]) for start in range(0, len(self), BLOCK)], axis=1
        )
        if allowed is not None:
            scores[:, ~allowed] = -np.inf
        best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        return np.sort(best, axis=1)

    def _compared(self, queries: Floats, codes: npt.NDArray[Any]) -> Floats:
        if self.ranges is not None:
            return queries @ self._restored(codes).T
        own = _bits(quantize(queries, self.precision), self.width)
        same = own @ _bits(codes, self.width).T  # of ±1: d − 2 · Hamming distance
        return np.asarray(same, dtype=np.float32)

    def _scores(self, query: Floats, rows: Rows, vectors: RowsOfFloats | None) -> Floats:
        if vectors is not None:
            return np.asarray(np.asarray(vectors[rows]) @ query, dtype=np.float32)
        codes = self.codes[rows]
        return (self._restored(codes) if self.ranges is not None else _bits(codes, self.width)) @ query

    def _restored(self, codes: npt.NDArray[Any]) -> Floats:
        assert self.ranges is not None
        low, step = scale_of(self.ranges, self.width)
        offset = 128 if self.precision == "int8" else 0
        return (codes.astype(np.float32) + offset) * step + low


def _bits(codes: npt.NDArray[Any], width: int) -> Floats:
    """[n, width] of ±1 from packed bytes."""
    packed = codes if codes.dtype == np.uint8 else (codes.astype(np.int16) + 128).astype(np.uint8)
    return np.unpackbits(packed, axis=-1, count=width).astype(np.float32) * 2 - 1
