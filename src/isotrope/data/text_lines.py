"""The lines of a text file, decoded; what is no text is said with the line that holds it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from isotrope.data.packed_streams import BEGINNINGS, opened, unpacking
from isotrope.errors import InputError

LONGEST = 4_000_000  # bytes; tokenizing takes about a hundred times the memory of a line
RETURN = b"\r"
# How a file of another encoding begins; UTF-32 before UTF-16, whose mark is its beginning.
MARKS = {b"\xff\xfe\0\0": "utf-32", b"\0\0\xfe\xff": "utf-32", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}


def lines_of(path: Path, place: int = 0, begin: int = 1) -> Iterator[tuple[int, str]]:
    """Decoded lines with their numbers; a bad byte is reported with the line that holds it.

    No more than ``LONGEST`` bytes of a line are read, packed or not, before it is refused. Reading may start at a
    ``place`` in bytes, where line ``begin`` begins.
    """
    first = b""
    with unpacking(path), opened(path) as source:
        if place:
            source.seek(place)
        for number, raw in enumerate(iter(partial(source.readline, LONGEST + 2), b""), begin):
            first = first or raw[:8]
            line = _decoded(raw, number, path, first)
            if number == 1:
                line = line.removeprefix("\ufeff")
                if "\r" in line.rstrip("\r\n") and (not line.endswith("\n") or not source.peek(1)):
                    raise InputError(
                        f"{path}: its lines end with a carriage return alone; convert it: "
                        f"tr '\\r' '\\n' < {path.name} > fixed{path.suffix}."
                    )
            yield number, line.rstrip("\r\n")


def _decoded(raw: bytes, number: int, path: Path, first: bytes) -> str:
    if len(raw) > LONGEST and len(raw.rstrip(b"\r\n")) > LONGEST:
        _refuse_binary(path, first)
        raise InputError(
            f"{path}:{number}: the line is longer than {LONGEST:,} bytes; break it into lines, one sentence or one "
            f"record each{' (it has carriage returns: tr them to line ends)' if RETURN in raw else ''}."
        )
    try:
        line = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse_binary(path, first)
        bad = error.object[error.start]
        raise InputError(
            f"{path}:{number}: byte 0x{bad:02x} is not UTF-8; convert the file, for example: {_conversion(path)}."
        ) from error
    if "\0" in line:
        _refuse_binary(path, first)
        wide = 3 * raw.count(0) > len(raw)
        advice = f"this looks like UTF-16: {_conversion(path, 'utf-16')}." if wide else "is this a binary file?"
        raise InputError(f"{path}:{number}: a NUL byte stands in the text; {advice}")
    return line


def _conversion(path: Path, encoding: str = "latin1") -> str:
    packed = {".gz": "gunzip -c", ".xz": "unxz -c", ".bz2": "bunzip2 -c"}.get(path.suffix.lower())
    if packed is None:
        return f"iconv -f {encoding} -t utf-8 {path.name} > fixed{path.suffix}"
    return f"{packed} {path.name} | iconv -f {encoding} -t utf-8 > fixed{path.with_suffix('').suffix}"


def _refuse_binary(path: Path, first: bytes) -> None:
    """Of what cannot be read: the first bytes of a file tell what it is."""
    for beginning, what in BEGINNINGS.items():
        if first.startswith(beginning):
            raise InputError(f"{path}: this is {what}.")
    for beginning, encoding in MARKS.items():
        if first.startswith(beginning):
            raise InputError(
                f"{path}: the file is {encoding.upper()}, not UTF-8; convert it: {_conversion(path, encoding)}."
            )
