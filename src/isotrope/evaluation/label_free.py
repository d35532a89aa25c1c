"""Measures that need no labels: can a text find its other half, and is the space still open?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.geometry import alignment, anisotropy, effective_rank, uniformity
from isotrope.measures.unit_vectors import unit_rows

FEWEST = 20  # pairs


class Pairs(NamedTuple):
    """Row i: ``first[i]`` and its natural partner ``second[i]``. ``origin``: "pairs" | "neighbours" | "halves"."""

    origin: str
    first: list[str]
    second: list[str]


class Retrieval(NamedTuple):
    """``mrr``: mean of 1 / rank; ``first``: the share that is ranked first."""

    mrr: float
    first: float


def natural_pairs(corpus: Corpus, rows: Rows, most: int = 1000) -> Pairs:
    """Pairs that the text itself offers: positives where there are some, else neighbours in a document, else the two
    halves of a sentence.
    """
    rows = rows[: 20 * most]
    if len(corpus.record_type.fields) > 1:
        first, second = corpus.record_type.fields[:2]
        alike = _alike(corpus, rows)[:most]
        if corpus.record_type.value is None or len(alike) >= 20:
            sides = ([corpus.text(row, side) for row in alike] for side in (first, second))
            return Pairs("pairs", *sides)
    neighbours = rows[:-1][(np.diff(rows) == 1) & (np.diff(corpus.documents[rows]) == 0)]
    if len(neighbours) >= 20 and corpus.counts.documents > 1:
        pairs = [(corpus.text(row), corpus.text(row + 1)) for row in neighbours[::2][:most]]
        return _different("neighbours", pairs)
    texts = dict.fromkeys(corpus.text(row) for row in rows[: 2 * most])
    cut = [half for text in texts if (half := halves(text))][:most]
    if len(cut) < 20:
        cut = [half for text in texts if (half := halves(text, words=2, letters=2))][:most]
    return _different("halves", cut)


def _different(origin: str, pairs: list[tuple[str, str]]) -> Pairs:
    kept = [(a, b) for a, b in pairs if a != b]
    return Pairs(origin, [a for a, _ in kept], [b for _, b in kept])


def _alike(corpus: Corpus, rows: Rows) -> Rows:
    """Pairs that mean the same: all, or those labelled entailment, or those above four fifths of the highest score."""
    records = Records(corpus, rows.tolist())
    if corpus.record_type.value == "label":
        return rows[[name.lower() == "entailment" for name in records.values()]]
    if corpus.record_type.value == "score":
        scores = records.scores()
        return rows[scores > 0.8 * scores.max(initial=0)]
    return rows


def halves(text: str, words: int = 6, letters: int = 12) -> tuple[str, str] | None:
    """The two halves of a text, cut between words (or letters, in a script without spaces); None if it is too short."""
    parts = text.split()
    if len(parts) >= words:
        return " ".join(parts[: len(parts) // 2]), " ".join(parts[len(parts) // 2 :])
    if len(parts) <= 2 and len(text) >= letters:
        return text[: len(text) // 2], text[len(text) // 2 :]
    return None


class Halves(NamedTuple):
    """``first[i]`` and ``second[i]`` are halves of a held-out sentence, ``distractors`` second halves of others."""

    first: list[str]
    second: list[str]
    distractors: list[str]


def draw_halves(
    corpus: Corpus, rows: Rows, queries: int = 512, distractors: int = 5000, tried: int = 20_000
) -> Halves | None:
    """Halves of the held-out ``rows``, and distractors of all other rows, drawn once; None where few can be cut.

    Distractors are mostly text that the run trains on: they are there to be told apart, and no half of them is asked
    for. Text that has pairs of its own has None: its pairs say better what belongs together.
    """
    if len(corpus.record_type.fields) > 1:
        return None
    rng = np.random.default_rng(0)
    held = dict.fromkeys(corpus.text(row) for row in rng.permutation(rows)[:tried])
    asked = [half for text in held if (half := halves(text))][:queries]
    if len(asked) < FEWEST:
        return None
    others = np.setdiff1d(rng.permutation(len(corpus))[:tried], rows)
    own = {second for _, second in asked}
    cut = dict.fromkeys(half[1] for row in rng.permutation(others) if (half := halves(corpus.text(row))))
    return Halves([a for a, _ in asked], [b for _, b in asked], [half for half in cut if half not in own][:distractors])


def partner_ranks(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The rank of row i of ``second`` among all its rows, by cosine with row i of ``first``; 1 is the nearest."""
    return ranks_of_own(unit_rows(first) @ unit_rows(second).T)


def ranks_of_own(scores: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """The rank of entry i among all entries of row i. Ties count half: a collapsed space must not look perfect.

    What is not a number ranks before everything, and its own row last: broken vectors must not look good.
    """
    own = np.diagonal(scores)[:, None]
    lower, equal = (scores < own).sum(axis=1), (scores == own).sum(axis=1)
    return np.asarray(scores.shape[1] - lower - (np.maximum(equal, 1) - 1) / 2)


def retrieval(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> Retrieval:
    """How row i of ``first`` ranks row i of ``second`` among all its rows."""
    ranks = partner_ranks(first, second)
    return Retrieval(float((1 / ranks).mean()), float((ranks < 1.5).mean()))


def label_free(encoder: Encoder, pairs: Pairs) -> dict[str, float]:
    """Retrieval, alignment, uniformity, effective rank and mean cosine on natural pairs, by name.

    Choose a checkpoint by ``other_view`` (below) or, where the text has pairs, by ``retrieval_mrr``; the others show
    collapse. Finding the other half of a sentence rewards shared words more than shared meaning: prefer scored pairs of
    the domain where there are some.
    """
    return measures_of(encoder.encode([*pairs.first, *pairs.second], show_progress_bar=False), pairs)


def find_other_half(encoder: Encoder, halves: Halves) -> float:
    """MRR of the other half of a sentence among the other halves of many: ``other_view`` in the log of a run."""
    vectors = encoder.encode([*halves.first, *halves.second, *halves.distractors], show_progress_bar=False)
    first, candidates = vectors[: len(halves.first)], vectors[len(halves.first) :]
    return other_view(first, candidates[: len(first)], candidates[len(first) :])


def other_view(first: npt.NDArray[Any], second: npt.NDArray[Any], distractors: npt.NDArray[Any]) -> float:
    """MRR of second_i among all of ``second`` and ``distractors``, by cosine with first_i; ties count half.

    The task is harder than that of ``retrieval_mrr``, so that encoders which all find the partner still differ.
    """
    scores = unit_rows(first) @ unit_rows(np.concatenate([second, distractors])).T
    return float((1 / ranks_of_own(scores)).mean())


def measures_of(both: npt.NDArray[Any], pairs: Pairs) -> dict[str, float]:
    """As ``label_free``, where the vectors are there: those of the first sides, then those of the second."""
    a, b = both[: len(pairs.first)], both[len(pairs.first) :]
    distinct = both[np.unique([*pairs.first, *pairs.second], return_index=True)[1]]
    found = retrieval(a, b)
    return {
        "retrieval_mrr": found.mrr,
        "retrieval_first": found.first,
        "alignment": alignment(a, b),
        "uniformity": uniformity(distinct),
        "effective_rank": effective_rank(distinct),
        "mean_cosine": anisotropy(distinct),
    }
