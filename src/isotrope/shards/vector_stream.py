"""An .npy file that grows row by row: the header is written again at the end, when the number of rows is known."""

from __future__ import annotations

from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from numpy.lib import format as npy


class VectorStream:
    """Rows go into an open file as they come; ``close`` makes it a whole .npy file. Nothing is held in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self.file, self.rows = file, 0
        self.width, self.dtype = 0, np.dtype(np.float32)

    def add(self, block: npt.NDArray[Any]) -> None:
        """Append rows; all blocks have the width and the type of the first."""
        if self.rows == 0:
            self.width, self.dtype = block.shape[1], block.dtype
            self._write_header()
        self.file.write(np.ascontiguousarray(block).data)
        self.rows += len(block)

    def close(self) -> None:
        end = self.file.tell()
        self.file.seek(0)
        self._write_header()
        self.file.seek(end)
        self.file.flush()

    def _write_header(self) -> None:
        """numpy leaves room for the number of rows to grow, so every header of one file is equally long."""
        facts = {"descr": npy.dtype_to_descr(self.dtype), "fortran_order": False, "shape": (self.rows, self.width)}
        npy.write_array_header_1_0(self.file, facts)
