"""Exact search in memory. The vectors of a text file are cached next to it, and computed again when the text or the
model changes.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isotrope.data.sentence_files import some_sentences
from isotrope.data.tables import check_file
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.finite_vectors import check_given
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, file_digest, written_file


@dataclass(frozen=True)
class Hit:
    """A text, its cosine with the query, and its line in the file, from 1."""

    text: str
    score: float
    line: int


class ExactIndex:
    """Texts with unit vectors; a query is one matrix product."""

    def __init__(
        self, encoder: Encoder, texts: list[str], vectors: npt.NDArray[np.float32], lines: list[int] | None = None
    ) -> None:
        check_given(vectors)
        self.encoder = encoder
        self.texts = texts
        self.vectors = vectors
        self.lines = lines or list(range(1, len(texts) + 1))

    def search(self, queries: list[str], top: int = 5) -> list[list[Hit]]:
        """The ``top`` nearest texts of each query by cosine; equal texts are given once."""
        if top < 1:
            raise InputError(f"top must be at least 1; {top} was given.")
        for query in queries:
            if not query.strip():
                raise InputError("The query is empty.")
        scores = self.encoder.encode(queries, normalize_embeddings=True) @ self.vectors.T
        results = []
        for row in scores:
            hits: dict[str, Hit] = {}
            for place in np.argsort(-row, kind="stable"):
                text = self.texts[place]
                if text not in hits:
                    hits[text] = Hit(text, float(row[place]), self.lines[place])
                if len(hits) == top:
                    break
            results.append(list(hits.values()))
        return results


def index_file(encoder: Encoder, path: str | os.PathLike[str], columns: list[str] | None = None) -> ExactIndex:
    """The index of a file's sentences, from the cache next to it where that still fits."""
    source = check_file(path)
    found = some_sentences(source, columns)
    key = digest(file_digest(source), encoder.fingerprint(), ",".join(columns or ()))
    vectors = _cached(source, key, len(found.texts), encoder.dimension)
    if vectors is None:
        vectors = encoder.encode(found.texts, normalize_embeddings=True)
        _keep(source, key, vectors)
    return ExactIndex(encoder, found.texts, vectors, found.lines)


def _places(source: Path) -> list[Path]:
    """Next to the text; in the user's cache where that folder cannot be written."""
    return [
        source.with_name(source.name + ".isotrope.npz"),
        cache_folder() / "vectors" / f"{digest(str(source.resolve()))}.npz",
    ]


def _cached(source: Path, key: str, rows: int, dimension: int) -> npt.NDArray[np.float32] | None:
    for place in _places(source):
        try:
            with np.load(place, allow_pickle=False) as kept:
                if str(kept["key"]) == key and kept["vectors"].shape == (rows, dimension):
                    vectors = np.asarray(kept["vectors"], dtype=np.float32)
                    if np.isfinite(vectors).all():  # else: damaged, or written before NaN was refused
                        return vectors
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
            continue
    return None


def _keep(source: Path, key: str, vectors: npt.NDArray[np.float32]) -> None:
    for place in _places(source):
        try:
            with written_file(place) as temporary, open(temporary, "wb") as target:
                np.savez(target, key=np.array(key), vectors=vectors)
            return
        except (InputError, OSError):
            continue
