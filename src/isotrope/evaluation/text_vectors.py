"""The vectors of many texts, each text encoded once however often a benchmark repeats it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isotrope.encoders.encoder import Encoder, Vectors


class TextVectors:
    """Vectors by text: row i of ``vectors`` is that of ``texts[i]``."""

    def __init__(self, texts: Sequence[str], vectors: Vectors) -> None:
        self.texts = texts
        self.vectors = vectors
        self.row = {text: number for number, text in enumerate(texts)}

    @classmethod
    def encoded(cls, encoder: Encoder, texts: Iterable[str], normalize: bool = False) -> TextVectors:
        """The different texts, sorted, so that the result does not hang on the order of the tasks."""
        order = sorted(set(texts))
        return cls(order, encoder.encode(order, normalize_embeddings=normalize))

    def of(self, texts: Sequence[str]) -> Vectors:
        """[texts, dimension], in the order of ``texts``."""
        return self.vectors[[self.row[text] for text in texts]]
