"""How vectors are written: normalized or not, and in how many bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isotrope.encoders.precision import SCALAR, Ranges, quantize
from isotrope.files import digest
from isotrope.shards.text_blocks import TextBlocks

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

Codes = npt.NDArray[Any]


@dataclass(frozen=True)
class VectorForm:
    """``ranges`` are those of int8 and uint8; ``half``: a GPU computes in float16."""

    normalize: bool = False
    precision: str = "float32"
    ranges: Ranges | None = None
    half: bool = False

    @property
    def needs_ranges(self) -> bool:
        return self.precision in SCALAR and self.ranges is None

    def facts(self) -> dict[str, Any]:
        """What decides the bytes besides the vectors themselves, as JSON values."""
        ranges = None if self.ranges is None else digest(np.ascontiguousarray(self.ranges).tobytes())
        facts = {"normalize": self.normalize, "precision": self.precision, "ranges": ranges}
        return {**facts, "half": True} if self.half else facts

    def encode(self, encoder: Encoder, texts: list[str]) -> Codes:
        """[texts, width] in this form."""
        vectors = encoder.encode(texts, normalize_embeddings=self.normalize, show_progress_bar=False, half=self.half)
        return quantize(vectors, self.precision, self.ranges)


def stream_vectors(encoder: Encoder, blocks: TextBlocks, form: VectorForm) -> Iterator[tuple[list[str], Codes]]:
    """The texts of each block, blank ones included, and the vectors of those that are not blank."""
    for texts in blocks:
        full = [text for text in texts if text]
        if full:
            yield texts, form.encode(encoder, full)
        else:
            yield texts, np.empty((0, 0), dtype=np.float32)
