"""Records in blocks of about as many characters, for work that is cheaper on many texts at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

CHARACTERS = 1 << 18
T = TypeVar("T")


def record_blocks(records: Iterable[T], length: Callable[[T], int]) -> Iterator[list[T]]:
    """Lists of records in their order; memory is that of a block, and of its last record where that is long."""
    block: list[T] = []
    size = 0
    for record in records:
        block.append(record)
        size += length(record) + 1
        if size >= CHARACTERS:
            yield block
            block, size = [], 0
    if block:
        yield block
