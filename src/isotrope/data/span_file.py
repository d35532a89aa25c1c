"""A file of numbers of which short stretches are read, here and there: by position, without mapping it.

A page that is touched in a map counts as memory of the process, with up to 64 kB around it, for as long as the map
lasts. Read by position it does not, and it takes no more time.
"""

from __future__ import annotations

import os
from pathlib import Path
from struct import Struct
from typing import Any

import numpy as np
import numpy.typing as npt

TWO = Struct("<qq")  # running sums are int64


class SpanFile:
    """``spans[start:end]`` of a file; the descriptor is opened at the first one."""

    def __init__(self, path: Path, dtype: str) -> None:
        self.path, self.dtype = path, np.dtype(dtype)
        self._descriptor: int | None = None

    def between(self, start: int, end: int) -> npt.NDArray[Any]:
        """The numbers from place ``start`` to before ``end``."""
        size = self.dtype.itemsize
        return np.frombuffer(self._bytes((end - start) * size, start * size), self.dtype)

    def borders(self, place: int) -> tuple[int, int]:
        """The number before ``place``, zero before the first, and the number there: a stretch of running sums."""
        if not place:
            return 0, int(self.between(0, 1)[0])
        start, end = TWO.unpack(self._bytes(16, 8 * place - 8))
        return start, end

    def _bytes(self, count: int, place: int) -> bytes:
        if not hasattr(os, "pread"):  # Windows
            with open(self.path, "rb") as source:
                source.seek(place)
                return source.read(count)
        if self._descriptor is None:
            self._descriptor = os.open(self.path, os.O_RDONLY)
        return os.pread(self._descriptor, count, place)

    def __reduce__(self) -> tuple[type[SpanFile], tuple[Path, str]]:
        """A copy opens the file for itself."""
        return type(self), (self.path, self.dtype.str)

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            os.close(self._descriptor)  # type: ignore[arg-type]
            self._descriptor = None
