"""A memory bank: a vector for every record of the data, as it was when the record was last seen (Wu et al. 2018).

    v_i ← norm(m · v_i + (1 − m) · q_i) for the records of the batch, after each optimiser step

Candidates are drawn from it, as many as one likes. No second encoder is needed; but a vector is as old as its record's
last visit, up to an epoch, and so the candidates come from many different encoders. ``KeyQueue`` holds the last keys
instead. Memory: records × width × 4 bytes on the device, and as much in each checkpoint.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import normalize

from isotrope.towers.keeping import Tower


class MemoryBank(Tower):
    """``fill`` it before the first step; ``seen`` says whose vectors are there. Both buffers travel with checkpoints.

    ``after_update`` takes ``representations["queries"]`` and ``["rows"]``, the numbers of their records; with gradient
    accumulation those are the last of the batches only.
    """

    vectors: Tensor  # [records, width], unit rows; zeros where a record was never seen
    seen: Tensor  # [records]

    def __init__(self, records: int, width: int, momentum: float) -> None:
        super().__init__()
        self.momentum = momentum
        self.register_buffer("vectors", torch.zeros(records, width))
        self.register_buffer("seen", torch.zeros(records, dtype=torch.bool))

    def __len__(self) -> int:
        return len(self.vectors)

    @torch.no_grad()
    def fill(self, rows: Tensor, vectors: Tensor) -> None:
        """Store the vectors of records for the first time."""
        self.vectors[rows] = normalize(vectors.float(), dim=-1)
        self.seen[rows] = True

    def draw(self, count: int, generator: torch.Generator) -> Tensor:
        """The numbers of ``count`` different records, alike in every process that has the same generator."""
        return torch.randperm(len(self), generator=generator)[:count].to(self.vectors.device)

    def filled(self) -> float:
        """The share of the records that have a vector."""
        return float(self.seen.float().mean())

    @torch.no_grad()
    def after_update(self, representations: dict[str, Tensor]) -> None:
        """The records just seen move towards their new vectors; one that had none takes it."""
        rows, queries = representations["rows"], normalize(representations["queries"].float(), dim=-1)
        kept = self.momentum * self.seen[rows].unsqueeze(1)
        self.vectors[rows] = normalize(kept * self.vectors[rows] + (1 - kept) * queries, dim=-1)
        self.seen[rows] = True
