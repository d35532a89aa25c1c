"""A text file as numbered blocks of records: any block can be read without holding the others.

    block n = records n · size … (n + 1) · size − 1, the blank ones counted

Blocks depend on the file and the size alone, so vectors that are made block by block are the same whoever makes them.
In a plain .txt file a block is found by counting line ends; other formats are read from the front, and only forwards
where blocks are asked for in order.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from isotrope.data.readers import read, refuse_columns
from isotrope.data.record_types import record_type_named
from isotrope.data.tables import check_file
from isotrope.data.text_lines import lines_of

SIZE = 16_384  # records in a block: 25 MB of float32 at width 384
CHUNK = 1 << 20  # bytes


class TextBlocks:
    """The texts of each block; a blank record is an empty string. ``count`` is known once the end was seen."""

    def __init__(self, path: str | os.PathLike[str], columns: Sequence[str] | None = None, size: int = SIZE) -> None:
        self.path, self.columns, self.size = check_file(path), columns, int(size)
        if self._plain:  # its lines are found here, not by the reader
            refuse_columns(self.path, columns)
        self.count: int | None = None
        self._places = [0]  # where the blocks of a plain text begin, in bytes
        self._next, self._texts = 0, iter(())  # type: tuple[int, Iterator[str]]

    def block(self, number: int) -> list[str] | None:
        """The texts of a block; None behind the last one."""
        if not self._plain:
            return self._read(number)
        if not self._found(number):
            return None
        lines = lines_of(self.path, self._places[number], number * self.size + 1)
        return [" ".join(line.split()) for _, line in islice(lines, self.size)]

    def __iter__(self) -> Iterator[list[str]]:
        number = 0
        while (texts := self.block(number)) is not None:
            yield texts
            number += 1

    def counted(self) -> int:
        """How many blocks there are; the file is read to its end."""
        number = 0
        while self.count is None:
            number += 1
            _ = self._found(number) if self._plain else self._read(number)
        return self.count

    @property
    def _plain(self) -> bool:
        return self.path.suffix.lower() == ".txt"

    def _read(self, number: int) -> list[str] | None:
        if self._next == 0 or number < self._next:
            records = read(self.path, record_type_named("sentences"), self.columns)
            self._next, self._texts = 0, (record.texts[0] for record in records)
        while self._next < number and self._take():
            pass
        return (self._take() or None) if self._next == number else None

    def _take(self) -> list[str]:
        texts = list(islice(self._texts, self.size))
        self._next += bool(texts)
        if len(texts) < self.size:
            self.count = self._next
        return texts

    def _found(self, number: int) -> bool:
        """Whether a plain text has this block; its place is known then."""
        if number >= len(self._places) and self.count is None:
            with open(self.path, "rb") as source:
                source.seek(self._places[-1])
                while number >= len(self._places) and self.count is None:
                    self._pass_block(source.fileno())
        return number < (len(self._places) if self.count is None else self.count)

    def _pass_block(self, descriptor: int) -> None:
        """Note where the next block begins, or that there is none."""
        wanted, place, whole = self.size, self._places[-1], self.path.stat().st_size
        while True:
            read_bytes = os.pread(descriptor, CHUNK, place)
            ends = read_bytes.count(b"\n")
            if ends < wanted and read_bytes:
                wanted, place = wanted - ends, place + len(read_bytes)
                continue
            break
        cut = -1
        for _ in range(wanted if read_bytes else 0):
            cut = read_bytes.index(b"\n", cut + 1)
        place += cut + 1
        if not read_bytes or place >= whole:
            self.count = len(self._places)
        else:
            self._places.append(place)


def count_lines(path: Path) -> int | None:
    """Records of a plain text, for a bar; None where only reading it would tell."""
    if path.suffix.lower() != ".txt":
        return None
    found = 0
    with open(path, "rb") as source:
        while chunk := source.read(CHUNK):
            found += chunk.count(b"\n")
    return found
