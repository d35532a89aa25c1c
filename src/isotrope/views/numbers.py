"""What a record carries besides its text, as a view: labels, scores, entities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch


@dataclass(frozen=True)
class Numbers:
    """One row of numbers for each record; whole numbers stay whole."""

    values: torch.Tensor  # [rows] or [rows, …]

    @classmethod
    def of(cls, values: npt.ArrayLike) -> Numbers:
        array: npt.NDArray[Any] = np.asarray(values)
        whole = np.issubdtype(array.dtype, np.integer)
        return cls(torch.from_numpy(array.astype(np.int64 if whole else np.float32)))

    def __len__(self) -> int:
        return len(self.values)

    def to(self, device: torch.device) -> Numbers:
        return Numbers(self.values.to(device, non_blocking=True))

    def rows(self, rows: slice) -> Numbers:
        return Numbers(self.values[rows])
