"""Captions of pictures as a retrieval set: a caption looks for the other captions of its picture among all captions.

    NAME_captions.test      image_id, sentence (or caption)

Captions of one picture say the same in other words, written by people who did not see each other's. So the set asks for
paraphrases, as ``sts`` does, but by ranking among thousands; it says little of long documents.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from isotrope.errors import InputError
from isotrope.evaluation.benchmark_files import find_task
from isotrope.evaluation.results import Section
from isotrope.evaluation.retrieval_files import RetrievalSet, names_before, place_of, table_rows
from isotrope.evaluation.retrieval_scores import Nearest

PART, KIND = ".test", "_captions"
COLUMNS = (("image_id",), ("sentence", "caption", "text"))
QUERIES, NEIGHBOURS = 4, 3


@dataclass(frozen=True)
class CaptionFile:
    name: str
    path: Path

    def state(self) -> tuple[tuple[int, int], ...]:
        """Size and time of the file, by which a changed one is known."""
        found = self.path.stat()
        return ((found.st_size, found.st_mtime_ns),)

    def read(self) -> RetrievalSet:
        return read_captions(self)


def find_captions(folder: Path) -> list[CaptionFile]:
    """The captions of ``folder``/retrieval, or of the folder itself, by name; there may be none."""
    place = place_of(folder)
    names = [name + KIND for name in names_before(place, KIND + PART)]
    return [CaptionFile(name, find_task(place, name + PART)) for name in names]


def read_captions(file: CaptionFile) -> RetrievalSet:
    """Every caption is a document and, where its picture has another one, a query. Equal captions of a picture are one:
    a copy would be found by any encoder.
    """
    rows = dict.fromkeys((picture, text) for _, (picture, text) in table_rows(file.path, COLUMNS) if text)
    pictures: dict[str, list[int]] = {}
    for row, (picture, _) in enumerate(rows):
        pictures.setdefault(picture, []).append(row)
    texts = [text for _, text in rows]
    asked = [(row, group) for group in pictures.values() if len(group) > 1 for row in group]
    if not asked:
        raise InputError(f"{file.path}: no picture has two captions; rows with the same image_id are needed.")
    asked.sort()
    return RetrievalSet(
        name=file.name,
        documents=texts,
        queries=[texts[row] for row, _ in asked],
        gains=[{other: 1.0 for other in group if other != row} for row, group in asked],
        unjudged=len(texts) - len(asked),
        own=np.array([row for row, _ in asked], dtype=np.int64),
    )


def neighbours(found: RetrievalSet, nearest: Nearest, seed: int) -> Section:
    """The nearest captions of a few, drawn by the seed: what the encoder takes for similar, to be read by a person."""
    chosen = np.random.default_rng(seed).permutation(len(found.queries))[:QUERIES]
    rows = []
    for query in sorted(chosen.tolist()):
        rows.append((found.queries[query], "", ""))
        for place in range(min(NEIGHBOURS, nearest.rows.shape[1])):
            row, cosine = int(nearest.rows[query, place]), float(nearest.cosines[query, place])
            picture = "same" if row in found.gains[query] else "another"
            rows.append((f"  {place + 1}. {found.documents[row]}", f"{cosine:.2f}", picture))
    title = f"{found.name}: the nearest of {len(found.documents):,} captions"
    return Section(title, ("caption, and its neighbours", "cosine", "picture"), rows)
