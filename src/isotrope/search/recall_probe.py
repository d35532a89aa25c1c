"""What an engine that does not compare everything costs: the share of the exact ten that it finds.

    recall@10 = mean over probes of |found ten ∩ exact ten| / 10

Probes are up to a hundred texts of the index, spread evenly; each looks for its neighbours, and itself is not counted.
Exact is float32 in all dimensions of the model. Recall is no quality: a lost neighbour may have been a wrong one. What
it means for your queries the retrieval suite tells, or ``benchmarks/vector_bits.py``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.search.index_rows import Scanned

Floats = npt.NDArray[np.float32]
TOP, PROBES = 10, 100


def probe_rows(rows: int) -> list[int]:
    """Numbers of the rows that ask."""
    count = min(PROBES, rows)
    return [number * rows // count for number in range(count)]


def probe_texts(scanned: Scanned) -> list[str]:
    wanted = probe_rows(len(scanned))
    texts, start = [], 0
    rows = scanned.rows()
    for number in wanted:
        texts.append(next(itertools.islice(rows, number - start, None)).text)
        start = number + 1
    return texts


class Probes:
    """The probes' exact neighbours, gathered block by block while an index is built."""

    def __init__(self, vectors: Floats, rows: int) -> None:
        self.vectors, self.own = vectors, probe_rows(rows)

    def of_block(self, first: int, documents: Floats) -> dict[str, npt.NDArray[Any]]:
        """The best rows of a block, of which ``first`` is the number of the first row, for each probe."""
        scores = self.vectors @ documents.T
        top = np.argsort(-scores, axis=1, kind="stable")[:, : TOP + 1]
        return {"rows": top + first, "scores": np.take_along_axis(scores, top, axis=1)}

    def exact(self, blocks: Iterable[Mapping[str, npt.NDArray[Any]]]) -> list[list[int]]:
        """The exact ten of each probe, of what all blocks gave."""
        gathered = list(blocks)
        rows = np.concatenate([found["rows"] for found in gathered], axis=1)
        scores = np.concatenate([found["scores"] for found in gathered], axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")
        ranked = np.take_along_axis(rows, order, axis=1).tolist()
        return [self.others(number, found) for number, found in enumerate(ranked)]

    def others(self, probe: int, rows: Sequence[int]) -> list[int]:
        """The first ten but the probe itself."""
        return [row for row in rows if row != self.own[probe]][:TOP]

    def recall(self, exact: Sequence[Sequence[int]], found: Sequence[Sequence[int]]) -> float:
        shares = [
            len({*self.others(number, rows)} & {*wanted}) / max(len(wanted), 1)
            for number, (rows, wanted) in enumerate(zip(found, exact, strict=True))
        ]
        return float(np.mean(shares))
