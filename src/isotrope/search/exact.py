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
import torch

from isotrope.data.sentence_files import some_sentences
from isotrope.data.tables import check_file
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, file_digest, written_file

BLOCK = 16_384  # vectors that a block of queries is compared with at once


def top_rows(queries: torch.Tensor, vectors: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """(scores, rows), each [queries, top], best first: the rows of ``vectors`` with the largest dot products.

    Block by block, so that the scores of all rows never stand in memory at once.
    """
    scores = queries.new_empty(len(queries), 0)
    rows = torch.empty(len(queries), 0, dtype=torch.int64, device=queries.device)
    for start in range(0, len(vectors), BLOCK):
        found = queries @ vectors[start : start + BLOCK].T
        places = torch.arange(start, start + found.shape[1], device=rows.device).expand_as(found)
        scores, rows = torch.cat([scores, found], dim=1), torch.cat([rows, places], dim=1)
        scores, order = scores.topk(min(top, scores.shape[1]), dim=1)
        rows = rows.gather(1, order)
    return scores, rows


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
                    return np.asarray(kept["vectors"], dtype=np.float32)
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
