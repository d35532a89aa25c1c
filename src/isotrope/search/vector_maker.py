"""Texts → the vectors that an index keeps: unit vectors of the model, cut to the kept dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from isotrope.encoders.encoder_uses import DOCUMENT_NAMES, QUERY_NAMES
from isotrope.encoders.finite_vectors import check_given
from isotrope.errors import InputError
from isotrope.search.index_manifest import ModelFacts

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder

Floats = npt.NDArray[np.float32]


class VectorMaker:
    """An encoder as an index uses it. A model with prompts of its own for queries and documents has both used."""

    def __init__(self, encoder: Encoder, name: str | None = None, dimension: int | None = None) -> None:
        self.encoder = encoder
        if dimension is not None and not 1 <= dimension <= encoder.dimension:
            raise InputError(
                f"dimensions must lie between 1 and {encoder.dimension}, those of this model; {dimension} was given.",
                "dimensions",
            )
        self.dimension = int(dimension or encoder.dimension)
        self.facts = ModelFacts(name, encoder.fingerprint(), encoder.dimension)

    @property
    def is_cut(self) -> bool:
        return self.dimension < self.facts.width

    def documents(self, texts: Sequence[str]) -> Floats:
        """[texts, width]: all dimensions."""
        return self._encoded(DOCUMENT_NAMES, texts)

    def queries(self, texts: Sequence[str]) -> Floats:
        """[texts, dimension], unit vectors."""
        return self.kept(self._encoded(QUERY_NAMES, texts))

    def kept(self, vectors: Floats) -> Floats:
        """Unit vectors of the leading dimensions."""
        if not self.is_cut:
            return vectors
        cut = vectors[:, : self.dimension]
        return np.asarray(cut / np.maximum(np.linalg.norm(cut, axis=1, keepdims=True), 1e-12), dtype=np.float32)

    def _encoded(self, names: Sequence[str], texts: Sequence[str]) -> Floats:
        """With the first of these prompts that the encoder has, or its default one: both sides have been trained so."""
        known = getattr(self.encoder, "prompts", {})
        found = next((name for name in names if name in known), None)
        options: dict[str, Any] = {} if found is None else {"prompt_name": found}
        made = self.encoder.encode(list(texts), normalize_embeddings=True, show_progress_bar=False, **options)
        vectors = np.asarray(made, dtype=np.float32)
        check_given(vectors)
        return vectors
