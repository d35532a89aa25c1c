"""Sizes and checksums of the files of an index: a damaged one is refused when the index is opened, not searched.

They stand in the manifest with the time of each file. A file of that size and time is trusted; any other is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from isotrope.checksums import sum_of
from isotrope.errors import InputError

Sums = dict[str, list[int]]  # by path inside the index: size, CRC-32, time of the last change in nanoseconds
BLOCKS = "blocks"


def sums_of_parts(folder: Path, parts: Mapping[str, Any], known: Mapping[str, list[int]]) -> Sums:
    """Of all files that ``parts`` name; those of an earlier manifest are not read again."""
    found = {}
    for file in _files(folder, parts):
        name, time = file.relative_to(folder).as_posix(), file.stat().st_mtime_ns
        kept = known.get(name)
        found[name] = kept if kept is not None and kept[2] == time else [*sum_of(file), time]
    return found


def check_parts(folder: Path, sums: Mapping[str, list[int]]) -> None:
    """Refuse an index with a file that is not as it was written."""
    for name, (size, crc, time) in sums.items():
        file = folder / name
        try:
            found = file.stat()
            same = found.st_size == size and (found.st_mtime_ns == time or sum_of(file) == [size, crc])
        except OSError:
            same = False
        if not same:
            raise InputError(
                f"{file}: the file is missing or not as it was written; remove the index and build it again."
            )


def _files(folder: Path, parts: Mapping[str, Any]) -> Iterator[Path]:
    named = [str(value) for value in parts.values() if isinstance(value, str)]
    for place in [*(folder / BLOCKS / name for name, _ in parts[BLOCKS]), *(folder / name for name in named)]:
        yield from sorted(place.rglob("*")) if place.is_dir() else [place]
