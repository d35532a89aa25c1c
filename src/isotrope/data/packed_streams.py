"""Packed files as streams of bytes: .gz, .xz and .bz2, unpacked as they are read.

Python's own readers of .xz and .bz2 pass over whatever stands behind the first stream, so that a second one that is cut
short, or garbage, is lost without a word. Here each stream is unpacked to the end, and the rest must be another one.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from isotrope.errors import InputError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

BLOCK = 1 << 16  # bytes of the packed file in one call
DECOMPRESSORS: dict[str, Callable[[], Any]] = {".xz": lzma.LZMADecompressor, ".bz2": bz2.BZ2Decompressor}
# How files begin that are packed or binary, whatever they are called.
BEGINNINGS = {
    b"\x1f\x8b": "a gzip file; give it a name that ends with .gz",
    b"\xfd7zXZ\0": "an xz file; give it a name that ends with .xz",
    b"BZh": "a bzip2 file; unpack it with bunzip2",
    b"PK\x03\x04": "a zip file; unpack it with unzip",
    b"\x28\xb5\x2f\xfd": "a zstd file; unpack it with unzstd",
    b"PAR1": "a parquet file; give it a name that ends with .parquet",
    b"\x93NUMPY": "an array of numpy, not a text",
}


def opened(path: Path) -> io.BufferedReader:
    """The bytes of a file, unpacked as its name says. Wiki dumps come as .bz2; tables do not."""
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast(io.BufferedReader, gzip.open(path, "rb"))
    if suffix in DECOMPRESSORS:
        return io.BufferedReader(_Unpacked(path, DECOMPRESSORS[suffix]), BLOCK)
    return open(path, "rb")


@contextmanager
def unpacking(path: Path) -> Iterator[None]:
    """A damaged packed file becomes one sentence, wherever in the block it is noticed."""
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk, not the content
            raise
        raise InputError(f"{path}: the packed file is damaged or cut short ({error}).") from error


class _Unpacked(io.RawIOBase):
    """Streams behind one another, as xz and bzip2 allow; between those of xz there may be zeros."""

    def __init__(self, path: Path, make: Callable[[], Any]) -> None:
        self.file, self.make = path.open("rb"), make
        self.stream: Any = make()
        self.rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        while True:
            if self.stream.eof and not self._next_stream():
                return 0
            packed = b""
            if self.stream.needs_input:
                packed, self.rest = self.rest or self.file.read(BLOCK), b""
                if not packed:
                    raise EOFError("Compressed file ended before the end-of-stream marker was reached")
            found = self.stream.decompress(packed, len(view))
            if found:
                view[: len(found)] = found
                return len(found)

    def _next_stream(self) -> bool:
        """Whether another stream follows; zeros that pad an .xz file are none."""
        rest = self.stream.unused_data
        while block := self.file.read(BLOCK) if not rest.strip(b"\0") else b"":
            rest = block
        if not rest.strip(b"\0"):
            return False
        self.stream, self.rest = self.make(), rest.lstrip(b"\0") if self.make is lzma.LZMADecompressor else rest
        return True

    def close(self) -> None:
        self.file.close()
        super().close()
