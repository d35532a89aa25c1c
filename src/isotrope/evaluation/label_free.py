"""Measures that need no labels: can a text find its other half, and is the space still open?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.geometry import alignment, anisotropy, effective_rank, uniformity

Pairs = tuple[str, list[str], list[str]]  # what the pairs are, first sides, second sides


def natural_pairs(corpus: Corpus, rows: Rows, most: int = 1000) -> Pairs:
    """Pairs that the text itself offers:

    positives where there are some, neighbours in a document, or the two halves of a sentence.
    """
    rows = rows[: 20 * most]
    if len(corpus.record_type.fields) > 1:
        first, second = corpus.record_type.fields[:2]
        alike = _alike(corpus, rows)[:most]
        if corpus.record_type.value is None or len(alike) >= 20:
            return "pairs", [corpus.text(row, first) for row in alike], [corpus.text(row, second) for row in alike]
    neighbours = rows[:-1][(np.diff(rows) == 1) & (np.diff(corpus.documents[rows]) == 0)]
    if len(neighbours) >= 20 and corpus.counts.documents > 1:
        chosen = neighbours[::2][:most]
        pairs = [(corpus.text(row), corpus.text(row + 1)) for row in chosen]
        kind = "neighbours"
    else:
        texts = dict.fromkeys(corpus.text(row) for row in rows[: 2 * most])
        pairs = [half for text in texts if (half := halves(text))][:most]
        if len(pairs) < 20:
            pairs = [half for text in texts if (half := halves(text, words=2, letters=2))][:most]
        kind = "halves"
    pairs = [(a, b) for a, b in pairs if a != b]
    return kind, [a for a, _ in pairs], [b for _, b in pairs]


def _alike(corpus: Corpus, rows: Rows) -> Rows:
    """Pairs that mean the same:

    all, or those labelled entailment, or those scored above four fifths of the highest score.
    """
    records = Records(corpus, rows.tolist())
    if corpus.record_type.value == "label":
        return rows[[name.lower() == "entailment" for name in records.values()]]
    if corpus.record_type.value == "score":
        scores = records.scores()
        return rows[scores > 0.8 * scores.max(initial=0)]
    return rows


def halves(text: str, words: int = 6, letters: int = 12) -> tuple[str, str] | None:
    """The two halves of a text, cut between words (or letters, where a script has no spaces); None if it is too short."""
    parts = text.split()
    if len(parts) >= words:
        return " ".join(parts[: len(parts) // 2]), " ".join(parts[len(parts) // 2 :])
    if len(parts) <= 2 and len(text) >= letters:
        return text[: len(text) // 2], text[len(text) // 2 :]
    return None


def partner_ranks(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The rank of row i of ``second`` among all its rows, by cosine with row i of ``first``; 1 is the nearest."""
    a, b = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-12) for side in (first, second))
    scores = a @ b.T
    own = np.diag(scores)[:, None]
    # Ties count half: a collapsed space must not look perfect.
    return np.asarray(1 + (scores > own).sum(axis=1) + ((scores == own).sum(axis=1) - 1) / 2)


def retrieval(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> dict[str, float]:
    """How row i of ``first`` ranks row i of ``second`` among all of them:

    mean reciprocal rank, and the share ranked first.
    """
    ranks = partner_ranks(first, second)
    return {"mrr": float((1 / ranks).mean()), "first": float((ranks < 1.5).mean())}


def label_free(encoder: Encoder, pairs: Pairs) -> dict[str, float]:
    """Retrieval, alignment, uniformity, effective rank and mean cosine on natural pairs."""
    _, first, second = pairs
    return measures_of(encoder.encode([*first, *second], show_progress_bar=False), pairs)


def measures_of(both: npt.NDArray[Any], pairs: Pairs) -> dict[str, float]:
    """The same for vectors that are there already: of the first sides, then of the second."""
    _, first, second = pairs
    a, b = both[: len(first)], both[len(first) :]
    distinct = both[np.unique([*first, *second], return_index=True)[1]]
    found = retrieval(a, b)
    return {
        "retrieval_mrr": found["mrr"],
        "retrieval_first": found["first"],
        "alignment": alignment(a, b),
        "uniformity": uniformity(distinct),
        "effective_rank": effective_rank(distinct),
        "mean_cosine": anisotropy(distinct),
    }
