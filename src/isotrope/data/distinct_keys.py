"""How many keys of a file differ, without holding them all: those of one range at a time are sorted and counted.

    distinct = Σ_p |{ k : ⌊parts · k / 2⁶⁴⌋ = p }|

Keys are hashes, so the ranges are about equal. The file is read once for each range, 64 times at most: memory is
8 MB up to 33 million keys, and a quarter of a byte a key beyond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from isotrope.data.corpus_files import Keys

HELD = 1 << 19  # keys sorted at once
MOST = 64  # readings of the file
BLOCK = 1 << 16  # keys read at once


def count_distinct(blocks: Callable[[int], Iterator[Keys]], total: int, held: int = HELD) -> int:
    """``blocks(n)`` gives the keys again from the first, n at a time; ``total`` is how many there are."""
    parts = min(-(-total // held), MOST)
    return sum(_distinct_of(blocks(BLOCK), part, parts) for part in range(parts))


def _distinct_of(blocks: Iterator[Keys], part: int, parts: int) -> int:
    """Those whose place among ``parts`` equal ranges is ``part``."""
    high, number = np.uint64(32), np.uint64(parts)
    chosen = [keys if parts == 1 else keys[(keys >> high) * number >> high == part] for keys in blocks]
    found = np.concatenate(chosen)
    chosen.clear()
    found.sort()
    return int(np.count_nonzero(found[1:] != found[:-1])) + (len(found) > 0)
