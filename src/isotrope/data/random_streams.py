"""Random seeds by purpose: what a run draws depends on its seed, on what for, and on the step; on nothing before it.

So a resumed run repeats an uninterrupted one. The key is hashed as text, because numpy's SeedSequence pads with zeros:
there (seed, step), (seed, step, 0) and (seed, step, 0, 0) are one stream, and a loss would draw what dropout drew.
"""

from __future__ import annotations

import hashlib

Key = tuple[int | str, ...]


def keyed_seed(purpose: str, *key: int | str) -> int:
    """A seed of 63 bits for numpy or torch; another purpose or another key has another one."""
    text = "/".join((purpose, *map(str, key)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1
