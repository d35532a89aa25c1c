"""Word frequency against the place of word vectors: the tables of BERT-flow (Li et al. 2020, table 1).

Words are tokens of the vocabulary without the special ones, ranked by how often the text has them; bins are bins of
that rank.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

BINS = ((0, 100), (100, 500), (500, 5000), (5000, 10_000))
NEIGHBOURS = (3, 5, 7)
Ids = npt.NDArray[np.int64]


@dataclass(frozen=True)
class FrequencyBin:
    """Words of rank ``low`` to ``high``: ``distance`` and ``dot_product`` are means over the k nearest, by k.

    None where the bin has no word, or fewer than k others exist.
    """

    low: int
    high: int
    words: int
    occurrences: int
    norm: float | None
    distance: dict[str, float | None]
    dot_product: dict[str, float | None]


def by_frequency(flat: npt.NDArray[Any], vocabulary: int, specials: frozenset[int]) -> tuple[Ids, Ids]:
    """Ids of the words that occur, commonest first (ties by id), and how often; at most as many as the bins hold."""
    counts = np.bincount(flat, minlength=vocabulary)
    counts[[number for number in specials if number < len(counts)]] = 0
    order = np.argsort(-counts, kind="stable")[: BINS[-1][1]]
    order = order[counts[order] > 0].astype(np.int64)
    return order, counts[order]


def frequency_table(vectors: Tensor, own: Ids, counts: Ids, norms: Tensor | None = None) -> list[FrequencyBin]:
    """For each bin of rank: mean ℓ2 norm, mean distance to the k nearest, mean of the k largest dot products.

    ``vectors`` [n, d] are all that may be neighbours; ``own`` are the rows of the ranked words, commonest first. A word
    is not its own neighbour. Nearest is by distance for the distance and by dot product for the dot product: the
    published pairs of norm, distance and dot product cannot come from one set of neighbours.
    """
    norms = vectors[torch.from_numpy(own)].norm(dim=-1) if norms is None else norms
    most = max(min(NEIGHBOURS[-1], len(vectors) - 1), 0)
    distances, products = _nearest(vectors.float(), torch.from_numpy(own), most)
    table = []
    for low, high in BINS:
        rows = slice(low, min(high, len(own)))
        words = max(rows.stop - low, 0)
        norm = float(norms[rows].mean()) if words else None
        occurrences = int(counts[rows].sum())
        near, dots = (_means(found[rows] if words else None, most) for found in (distances, products))
        table.append(FrequencyBin(low, high, words, occurrences, norm, near, dots))
    return table


def _means(found: Tensor | None, most: int) -> dict[str, float | None]:
    """The mean over the k nearest, for each k that there are as many neighbours of."""
    return {str(k): float(found[:, :k].mean()) if found is not None and k <= most else None for k in NEIGHBOURS}


def _nearest(vectors: Tensor, own: Tensor, k: int, block: int = 512) -> tuple[Tensor, Tensor]:
    """[words, k] distances, nearest first, and [words, k] dot products, largest first."""
    squares = vectors.pow(2).sum(dim=1)
    distances, products = [], []
    for rows in own.split(block):
        dots = vectors[rows] @ vectors.T
        dots[torch.arange(len(rows)), rows] = -torch.inf  # so its distance to itself is infinite
        products.append(dots.topk(k, dim=1).values)
        near = (squares[rows, None] + squares - 2 * dots).topk(k, dim=1, largest=False).values
        distances.append(near.clamp(min=0).sqrt())
    empty = torch.empty(0, k)
    return torch.cat([empty, *distances]).double(), torch.cat([empty, *products]).double()
