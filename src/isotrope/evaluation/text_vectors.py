"""The vectors of many texts, each text encoded once however often benchmarks repeat it.

Every suite takes its vectors from here: what other suites or earlier calls encoded is not encoded again where a cache
is open (vector_cache.py), and vectors that are not numbers are refused for all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from isotrope.encoders.cut_texts import count_cut, counting_cut, note_cut
from isotrope.encoders.encoder import Encoder, Vectors
from isotrope.encoders.finite_vectors import check_finite
from isotrope.evaluation.suite_lanes import encoding
from isotrope.evaluation.vector_cache import active_cache, model_key


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
        cache = active_cache(encoder)
        if cache is None:
            with encoding():
                vectors = encoder.encode(order)
        else:
            fresh: list[str] = []

            def encode(missing: list[str]) -> Vectors:
                fresh.extend(missing)
                found: Vectors = encoder.encode(missing)
                return found

            with counting_cut() as counted, encoding():  # what is missing is known when the suites before have encoded
                vectors = cache.vectors(model_key(encoder, encoder.fingerprint()), order, encode)
            known = sorted(set(order) - set(fresh))
            note_cut(len(order), counted.cut + count_cut(encoder, known), encoder.max_length)
        check_finite(order, vectors)
        return cls(order, _unit(vectors) if normalize else vectors)

    def of(self, texts: Sequence[str]) -> Vectors:
        """[texts, dimension], in the order of ``texts``."""
        return self.vectors[[self.row[text] for text in texts]]


def share_vectors(encoder: Encoder, texts: Sequence[str], vectors: Vectors) -> None:
    """Give the open cache vectors that ``encode`` made elsewhere; those it knows already stay."""
    cache = active_cache(encoder)
    if cache is not None:
        cache.share(model_key(encoder, encoder.fingerprint()), texts, vectors)


def _unit(vectors: Vectors) -> Vectors:
    """As ``encode`` with normalize_embeddings."""
    import torch
    from torch.nn.functional import normalize

    unit: Vectors = normalize(torch.from_numpy(vectors), dim=-1).numpy()
    return unit
