"""A hit: a row of an index that answers a query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from isotrope.search.passages import Passage


@dataclass(frozen=True)
class Hit:
    """A text, its score, and where it stands: its line in its file, from 1.

    ``score`` is the cosine (dense), BM25 (lexical) or 0.6 · z(cosine) + 0.4 · z(BM25) (hybrid): how many standard
    deviations the row stands above the other candidates of its query; of a hit that was re-ranked it is that of
    token_reranking.py. Scores of different modes do not compare, nor do hybrid or BM25 scores of different queries.
    ``columns`` are the kept columns of its row. ``marks`` are the characters of the text that are words of the query,
    as (start, end). A hybrid hit has ``cosine`` and ``bm25``, which is 0 without a shared word; others have the one
    that they were ranked by. ``passage`` says which one of its text it is, in an index of passages.
    """

    text: str
    score: float
    line: int
    file: str = ""
    id: str | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)
    marks: tuple[tuple[int, int], ...] = ()
    cosine: float | None = None
    bm25: float | None = None
    passage: Passage | None = None
    row: int = field(default=-1, repr=False, compare=False)  # its number in the index

    def to_dict(self) -> dict[str, Any]:
        """JSON values; what this hit does not have is left out."""
        facts: dict[str, Any] = {"score": round(self.score, 6), "line": self.line, "text": self.text}
        if self.file:
            facts["file"] = self.file
        if self.id is not None:
            facts["id"] = self.id
        if self.passage is not None:
            facts["passage"] = self.passage._asdict()
        if self.columns:
            facts["columns"] = dict(self.columns)
        facts["marks"] = [list(span) for span in self.marks]
        for name, value in (("cosine", self.cosine), ("bm25", self.bm25)):
            if value is not None:
                facts[name] = round(value, 6)
        return facts
