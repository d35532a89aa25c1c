"""The vectors of a file, from the disk to the disk: memory holds one block of texts and their vectors."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from isotrope.encoders.precision import Ranges, quantize
from isotrope.errors import InputError
from isotrope.files import written_file
from isotrope.progress import bar
from isotrope.shards.shard_store import PLAN
from isotrope.shards.text_blocks import SIZE, TextBlocks, count_lines
from isotrope.shards.vector_form import Codes, VectorForm, stream_vectors
from isotrope.shards.vector_stream import VectorStream

if TYPE_CHECKING:
    from collections.abc import Callable

    from isotrope.encoders.encoder import Encoder


@dataclass(frozen=True)
class Streamed:
    """What was written: rows, their width as vectors, and how many records were blank."""

    rows: int
    dimension: int
    empty: int


def refuse_no_sentence(blocks: TextBlocks) -> None:
    """Refuse a file without a sentence before a model is loaded; it is read as far as the first one."""
    if not any(any(texts) for texts in blocks):
        raise InputError(f"{blocks.path}: no sentences found.")


def check_text(blocks: TextBlocks, shards: Path) -> None:
    """Read all of a text before its first shard is written: a text that must be repaired makes others.

    A folder that has a plan was begun by somebody who read the text.
    """
    if (shards / PLAN).is_file():
        refuse_no_sentence(blocks)
    elif not sum(any(texts) for texts in blocks):
        raise InputError(f"{blocks.path}: no sentences found.")


def encode_stream(load: Callable[[], Encoder], blocks: TextBlocks, target: Path, form: VectorForm) -> Streamed:
    """Write the vectors of all blocks as one .npy file. Ranges that are missing for int8 are written next to it."""
    refuse_no_sentence(blocks)
    encoder = load()
    with written_file(target) as temporary, open(temporary, "wb") as file:
        if not form.needs_ranges:
            stream = VectorStream(file)
            return _encoded(encoder, blocks, form, stream.add, stream.close)
        # The ranges are known at the end: floats go to a file without a name first, which nobody has to remove.
        with tempfile.TemporaryFile(dir=target.parent) as floats:
            kept = FloatsWithRanges(floats, encoder.dimension)
            found = _encoded(encoder, blocks, replace(form, precision="float32"), kept.add, floats.flush)
            kept.write_codes(VectorStream(file), form.precision)
        with written_file(target.with_suffix(".ranges.npy")) as beside, open(beside, "wb") as ranges:
            np.save(ranges, kept.ranges())
    return found


def _encoded(
    encoder: Encoder, blocks: TextBlocks, form: VectorForm, add: Callable[[Codes], None], close: Callable[[], None]
) -> Streamed:
    rows = empty = 0
    with bar("encoding", count_lines(blocks.path)) as advance:
        for texts, codes in stream_vectors(encoder, blocks, form):
            if len(codes):
                add(codes)
            rows, empty = rows + len(codes), empty + len(texts) - len(codes)
            advance(len(texts))
    close()
    return Streamed(rows, encoder.dimension, empty)


class FloatsWithRanges:
    """Float vectors in a file, with the least and the greatest value of each dimension so far."""

    def __init__(self, file: IO[bytes], width: int) -> None:
        self.file, self.width, self.rows = file, width, 0
        self.low = np.full(width, np.inf, dtype=np.float32)
        self.high = -self.low

    def add(self, vectors: Codes) -> None:
        self.file.write(np.ascontiguousarray(vectors).data)
        self.low, self.high = np.minimum(self.low, vectors.min(axis=0)), np.maximum(self.high, vectors.max(axis=0))
        self.rows += len(vectors)

    def ranges(self) -> Ranges:
        if self.rows < 2:
            raise InputError("Ranges are those of two vectors or more; give the ranges of another file.")
        return np.vstack([self.low, self.high])

    def write_codes(self, stream: VectorStream, precision: str) -> None:
        ranges = self.ranges()
        self.file.seek(0)
        while block := self.file.read(SIZE * self.width * 4):
            stream.add(quantize(np.frombuffer(block, dtype=np.float32).reshape(-1, self.width), precision, ranges))
        stream.close()
