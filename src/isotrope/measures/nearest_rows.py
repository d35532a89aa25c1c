"""The rows of a matrix with the largest dot products, found exactly and block by block."""

from __future__ import annotations

import torch

BLOCK = 16_384  # vectors that a block of queries is compared with at once


def top_rows(queries: torch.Tensor, vectors: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(scores, rows), each [queries, top], best first: the rows of ``vectors`` with the largest dot products.

    Block by block, so that the scores of all rows never stand in memory at once. Rows with equal scores come in no
    order of their own. Vectors of unit length make the scores cosines.
    """
    scores = queries.new_empty(len(queries), 0)
    rows = torch.empty(len(queries), 0, dtype=torch.int64, device=queries.device)
    for start in range(0, len(vectors), BLOCK):
        found = queries @ vectors[start : start + BLOCK].T
        # Before they are joined: blocks are large, tops small.
        best, places = found.topk(min(top, found.shape[1]), dim=1)
        del found  # or two blocks of scores would stand in memory
        scores, rows = torch.cat([scores, best], dim=1), torch.cat([rows, places + start], dim=1)
        scores, order = scores.topk(min(top, scores.shape[1]), dim=1)
        rows = rows.gather(1, order)
    return scores, rows
