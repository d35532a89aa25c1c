"""Hard negatives for pairs: texts that an encoder ranks near an anchor, near enough to teach, and not so near that they
may be right.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.data.sentence_files import records_of
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.files import written_file
from isotrope.measures.nearest_rows import top_rows
from isotrope.progress import bar
from isotrope.search.numbered_pairs import NumberedPairs, number_pairs

FIRST, LAST = 10, 50  # ranks; the nearest few are often right answers that nobody marked
QUERIES = 256  # anchors searched at once
OWN = 1024  # pairs whose own cosine is taken at once


@dataclass(frozen=True)
class Choices:
    """For each pair the text that was drawn, and the cosines of anchor with positive and with negative.

    Where the negative is −1, the candidates of the window are ``too_near``, or there are none. ``draws`` are numbers
    from 0 to 1, one a pair, so that a choice does not depend on the blocks.
    """

    draws: npt.NDArray[np.float64]
    positive_scores: npt.NDArray[np.float32]
    negatives: npt.NDArray[np.int64]
    negative_scores: npt.NDArray[np.float32]
    too_near: npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Mined:
    """Triples of anchor, positive and negative, and what became of the pairs without a hard negative."""

    triples: list[tuple[str, str, str]]
    pairs: int
    empty: int  # a side without text
    duplicates: int  # pairs that stood earlier in the file
    too_near: int  # every candidate of the window scored above the margin
    too_few: int  # not as many other texts as the window begins with
    filled: int  # of these two, the pairs that have a random negative
    positive_score: float  # mean cosine of anchor and positive, where the negative is hard
    negative_score: float  # and of anchor and hard negative

    def counts(self) -> dict[str, int | float]:
        """Everything but the triples themselves, for a table or JSON."""
        return {**vars(self), "triples": len(self.triples)}

    def write(self, path: str | os.PathLike[str]) -> None:
        check_output(path)
        with written_file(path) as temporary, open(temporary, "w", encoding="utf-8") as target:
            target.write("anchor\tpositive\tnegative\n")
            target.writelines("\t".join(triple) + "\n" for triple in self.triples)  # white space was folded: no tabs


def check_output(path: str | os.PathLike[str]) -> None:
    if Path(path).suffix != ".tsv":
        raise InputError(f"{path}: triples are written as .tsv.")


def mine(
    pairs: str | os.PathLike[str] | Sequence[Any],
    model: str | os.PathLike[str] | Encoder = "builtin",
    output: str | os.PathLike[str] | None = None,
    *,
    first: int | None = None,
    last: int = LAST,
    margin: float | None = None,
    fill: bool = False,
    seed: int = 42,
    columns: Sequence[str] | None = None,
) -> Mined:
    """One hard negative for each pair, among the positives of all pairs, by cosine under ``model``.

    Candidates of an anchor are ranked from the nearest; its own positives, the anchors it is a positive of, and the
    text itself are none. One of the ranks ``first`` to ``last`` is drawn at random. ``margin`` is the minimum gap
    between positive and negative cosine; with it ``first`` is 1 unless given, without it 10. The nearest few are often
    right answers that nobody marked: neither option alone removes them, so look at some triples.

    A pair without a hard negative is left out; with ``fill`` its negative is a positive of another pair, drawn at
    random.
    """
    first = first if first is not None else FIRST if margin is None else 1
    if not 1 <= first <= last:
        raise InputError(f"The window of ranks begins at 1 or later and ends no earlier; {first} to {last} was given.")
    if margin is not None and not 0 <= margin < 2:
        raise InputError(f"margin is a difference of cosines, from 0 to 2; {margin} was given.")
    if output is not None:
        check_output(output)
    where, records = records_of(pairs, "pairs", columns)
    numbered = number_pairs(records)
    if not len(numbered):
        raise InputError(f"{where}: no pairs found.")
    encoder = model if isinstance(model, Encoder) else load(model)
    choices = _search(numbered, encoder, (first, last), margin, seed)
    hard = choices.negatives >= 0
    if not hard.any():
        hint = "lower first" if margin is None else "lower margin or raise last"
        raise InputError(
            f"{where}: none of the {len(numbered):,} pairs has a candidate of rank {first} to {last} that will do; "
            f"{hint}."
        )
    if fill:
        _fill(choices, numbered)
    chosen = np.flatnonzero(choices.negatives >= 0)
    texts = numbered.texts
    sides = (numbered.anchors[chosen], numbered.positives[chosen], choices.negatives[chosen])
    found = Mined(
        [(texts[anchor], texts[positive], texts[negative]) for anchor, positive, negative in zip(*sides, strict=True)],
        pairs=numbered.read,
        empty=numbered.empty,
        duplicates=numbered.duplicates,
        too_near=int(choices.too_near.sum()),
        too_few=int((~hard & ~choices.too_near).sum()),
        filled=len(chosen) - int(hard.sum()),
        positive_score=float(choices.positive_scores[hard].mean(dtype=np.float64)),
        negative_score=float(choices.negative_scores[hard].mean(dtype=np.float64)),
    )
    if output is not None:
        found.write(output)
    return found


def _search(pairs: NumberedPairs, encoder: Encoder, ranks: tuple[int, int], margin: float | None, seed: int) -> Choices:
    """One choice for each pair."""
    vectors = torch.from_numpy(encoder.encode(pairs.texts, normalize_embeddings=True)).to(encoder.device)
    own = _own_scores(pairs, vectors)
    found = Choices(
        np.random.default_rng(seed).random(len(pairs)),
        own,
        np.full(len(pairs), -1, dtype=np.int64),
        np.full(len(pairs), np.nan, dtype=np.float32),
        np.zeros(len(pairs), dtype=bool),
    )
    for anchor, rows, near in _candidates(pairs, vectors, ranks[1]):
        rows, near = rows[ranks[0] - 1 :], near[ranks[0] - 1 :]
        for place in pairs.places(anchor):
            fit = np.arange(len(rows)) if margin is None else np.flatnonzero(near <= float(own[place]) - margin)
            if len(fit):
                drawn = fit[int(found.draws[place] * len(fit))]
                found.negatives[place], found.negative_scores[place] = rows[drawn], near[drawn]
            else:
                found.too_near[place] = len(rows) > 0
    return found


def _fill(choices: Choices, pairs: NumberedPairs) -> None:
    """A random negative where there is no hard one: a positive that is neither the anchor nor one of its partners."""
    for place in np.flatnonzero(choices.negatives < 0):
        anchor = int(pairs.anchors[place])
        taken = np.unique([anchor, *pairs.partners(anchor)])
        taken = taken[taken < pairs.pool]
        if len(taken) < pairs.pool:
            free = int(choices.draws[place] * (pairs.pool - len(taken)))  # its number among those that may be drawn
            choices.negatives[place] = free + np.searchsorted(taken - np.arange(len(taken)), free, side="right")


def _own_scores(pairs: NumberedPairs, vectors: torch.Tensor) -> npt.NDArray[np.float32]:
    """The cosine of each pair, some pairs at a time."""
    found = np.empty(len(pairs), dtype=np.float32)
    for start in range(0, len(pairs), OWN):
        some = slice(start, start + OWN)
        firsts, seconds = (vectors[torch.from_numpy(side[some])] for side in (pairs.anchors, pairs.positives))
        found[some] = (firsts * seconds).sum(dim=1).cpu().numpy()
    return found


def _candidates(
    pairs: NumberedPairs, vectors: torch.Tensor, last: int
) -> Iterator[tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """For each anchor, the ``last`` nearest positives without itself and its partners, and their scores.

    Positives are the first of the vectors: their numbers are the same.
    """
    anchors, members = pairs.different_anchors(), vectors[: pairs.pool]
    with bar("mining", len(anchors)) as advance:
        for start in range(0, len(anchors), QUERIES):
            block = anchors[start : start + QUERIES]
            most = last + 1 + pairs.most_partners(block)
            asked = vectors[torch.from_numpy(block)]
            near, rows = (found.cpu().numpy() for found in top_rows(asked, members, most))
            for anchor, scores, places in zip(block.tolist(), near, rows, strict=True):
                kept = ~np.isin(places, [anchor, *pairs.partners(anchor)])
                yield anchor, places[kept][:last], scores[kept][:last]
            advance(len(block))
