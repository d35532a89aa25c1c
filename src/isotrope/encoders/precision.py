"""Vectors in fewer bits: int8 with a range for each dimension, or one bit each.

    int8, uint8       q = ⌊(v − low) / step⌋ in 0 … 255,  step = (high − low) / 255;   int8 is q − 128
    binary, ubinary   bit = [v > 0], eight to a byte;   binary is the byte − 128

Use int8 where memory is short: a quarter of float32, and hardly a loss. Use binary where it is very short (a 32nd),
with re-scoring (search/quantized.py). What goes wrong: ranges of a few vectors clip the next ones, so take them from
the documents and keep them; the sign means little where the mean of the vectors is far from zero. The numbers are those
of ``quantize_embeddings`` of sentence-transformers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError, nearest

PRECISIONS = ("float32", "int8", "uint8", "binary", "ubinary")
SCALAR = ("int8", "uint8")
Floats = npt.NDArray[np.float32]
Ranges = npt.NDArray[np.float32]  # [2, d]: the least and the greatest value of each dimension


def check_precision(precision: str) -> str:
    if precision not in PRECISIONS:
        raise InputError(
            f"precision is {', '.join(PRECISIONS[:-1])} or {PRECISIONS[-1]}; '{precision}' was given"
            f"{nearest(precision, PRECISIONS)}",
            setting="precision",
        )
    return precision


def ranges_of(vectors: Floats) -> Ranges:
    """[2, d] of some vectors; two at least, and better hundreds."""
    if vectors.ndim != 2 or len(vectors) < 2:
        raise InputError("Ranges are those of two vectors or more; give the ranges of another file.")
    return np.vstack([vectors.min(axis=0), vectors.max(axis=0)]).astype(np.float32)


def quantize(vectors: Floats, precision: str, ranges: Ranges | None = None) -> npt.NDArray[Any]:
    """[n, d] as codes, [n, d] or [n, d / 8]; without ``ranges`` int8 takes those of the vectors themselves."""
    check_precision(precision)
    if precision == "float32":
        return np.asarray(vectors, dtype=np.float32)
    if precision in SCALAR:
        low, step = scale_of(ranges_of(vectors) if ranges is None else ranges, vectors.shape[1])
        codes = np.clip(np.floor((vectors - low) / step), 0, 255)
        return codes.astype(np.uint8) if precision == "uint8" else (codes - 128).astype(np.int8)
    bits = np.packbits(vectors > 0, axis=-1)
    return bits if precision == "ubinary" else (bits.astype(np.int16) - 128).astype(np.int8)


def scale_of(ranges: Ranges, width: int) -> tuple[Floats, Floats]:
    """The least value and the step of each dimension; one that never varies has step 1."""
    if ranges.shape != (2, width):
        raise InputError(
            f"ranges have the shape (2, {width}) for these vectors; an array of shape {ranges.shape} was given.",
            setting="ranges",
        )
    low, high = ranges.astype(np.float32, copy=False)
    step = (high - low) / 255
    return low, np.where(step == 0, np.float32(1), step)
