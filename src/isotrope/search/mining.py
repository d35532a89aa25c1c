"""Hard negatives for pairs: texts that an encoder ranks near an anchor, near enough to teach, and not so near that they
may be right.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from isotrope.data.sentence_files import records_of
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.files import written_file
from isotrope.measures.nearest_rows import top_rows
from isotrope.progress import bar

FIRST, LAST = 10, 50  # ranks; the nearest few are often right answers that nobody marked
QUERIES = 1024  # anchors searched at once
OWN = 16_384  # pairs whose own cosine is taken at once


@dataclass(frozen=True)
class Choice:
    """The negative that was drawn for a pair, and the cosines of anchor with positive and with negative.

    Without a negative: the candidates of the window are ``too_near``, or there are none.
    """

    positive_score: float
    negative: str | None = None
    negative_score: float = float("nan")
    too_near: bool = False


@dataclass(frozen=True)
class Mined:
    """Triples of anchor, positive and negative, and what became of the pairs that gave none."""

    triples: list[tuple[str, str, str]]
    pairs: int
    empty: int  # a side without text
    duplicates: int  # pairs that stood earlier in the file
    too_near: int  # every candidate of the window scored above the margin
    too_few: int  # not as many other texts as the window begins with
    positive_score: float  # mean cosine of anchor and positive
    negative_score: float  # and of anchor and negative

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
    seed: int = 42,
    columns: Sequence[str] | None = None,
) -> Mined:
    """One hard negative for each pair, among the positives of all pairs, by cosine under ``model``.

    Candidates of an anchor are ranked from the nearest; its own positives, the anchors it is a positive of, and the
    text itself are none. One of the ranks ``first`` to ``last`` is drawn at random. ``margin`` is the minimum gap
    between positive and negative cosine; with it ``first`` is 1 unless given, without it 10. The nearest few are often
    right answers that nobody marked: neither option alone removes them, so look at some triples.
    """
    first = first if first is not None else FIRST if margin is None else 1
    if not 1 <= first <= last:
        raise InputError(f"The window of ranks begins at 1 or later and ends no earlier; {first} to {last} was given.")
    if margin is not None and not 0 <= margin < 2:
        raise InputError(f"margin is a difference of cosines, from 0 to 2; {margin} was given.")
    if output is not None:
        check_output(output)
    where, records = records_of(pairs, "pairs", columns)
    read = [record.texts for record in records]
    whole = [(anchor, positive) for anchor, positive in read if anchor and positive]
    kept = list(dict.fromkeys(whole))
    if not kept:
        raise InputError(f"{where}: no pairs found.")
    encoder = model if isinstance(model, Encoder) else load(model)
    choices = _search(kept, encoder, (first, last), margin, seed)
    chosen = [(pair, choice) for pair, choice in zip(kept, choices, strict=True) if choice.negative is not None]
    if not chosen:
        hint = "lower first" if margin is None else "lower margin or raise last"
        raise InputError(
            f"{where}: none of the {len(kept):,} pairs has a candidate of rank {first} to {last} that will do; {hint}."
        )
    found = Mined(
        [(anchor, positive, str(choice.negative)) for (anchor, positive), choice in chosen],
        pairs=len(read),
        empty=len(read) - len(whole),
        duplicates=len(whole) - len(kept),
        too_near=sum(choice.too_near for choice in choices),
        too_few=sum(choice.negative is None and not choice.too_near for choice in choices),
        positive_score=float(np.mean([choice.positive_score for _, choice in chosen])),
        negative_score=float(np.mean([choice.negative_score for _, choice in chosen])),
    )
    if output is not None:
        found.write(output)
    return found


def _search(
    pairs: list[tuple[str, str]], encoder: Encoder, ranks: tuple[int, int], margin: float | None, seed: int
) -> list[Choice]:
    """One choice for each pair."""
    pool = len({positive for _, positive in pairs})
    listed = dict.fromkeys([*(positive for _, positive in pairs), *(anchor for anchor, _ in pairs)])
    numbers = {text: number for number, text in enumerate(listed)}  # the candidates first
    texts = list(numbers)
    vectors = torch.from_numpy(encoder.encode(texts, normalize_embeddings=True)).to(encoder.device)
    partners: dict[int, set[int]] = defaultdict(set)
    pairs_of: dict[int, list[int]] = defaultdict(list)
    for place, (anchor, positive) in enumerate(pairs):
        a, p = numbers[anchor], numbers[positive]
        partners[a].add(p)
        partners[p].add(a)
        pairs_of[a].append(place)
    own = _own_scores([(numbers[anchor], numbers[positive]) for anchor, positive in pairs], vectors)
    draws = np.random.default_rng(seed).random(len(pairs))  # one a pair, so that the choice does not hang on the blocks
    choices = [Choice(score) for score in own]
    for number, rows, near in _candidates(list(pairs_of), vectors, vectors[:pool], partners, ranks[1]):
        rows, near = rows[ranks[0] - 1 :], near[ranks[0] - 1 :]
        for place in pairs_of[number]:
            fit = np.arange(len(rows)) if margin is None else np.flatnonzero(near <= own[place] - margin)
            if len(fit):
                drawn = fit[int(draws[place] * len(fit))]
                choices[place] = Choice(own[place], texts[rows[drawn]], float(near[drawn]))
            elif len(rows):
                choices[place] = Choice(own[place], too_near=True)
    return choices


def _own_scores(pairs: list[tuple[int, int]], vectors: torch.Tensor) -> list[float]:
    """The cosine of each pair, some pairs at a time."""
    found: list[float] = []
    for start in range(0, len(pairs), OWN):
        firsts, seconds = (list(side) for side in zip(*pairs[start : start + OWN], strict=True))
        found += (vectors[firsts] * vectors[seconds]).sum(dim=1).tolist()
    return found


def _candidates(
    anchors: list[int], vectors: torch.Tensor, members: torch.Tensor, partners: dict[int, set[int]], last: int
) -> Iterator[tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """For each anchor, the ``last`` nearest members without itself and its partners, and their scores.

    Members are the first of the vectors: their numbers are the same.
    """
    with bar("mining", len(anchors)) as advance:
        for start in range(0, len(anchors), QUERIES):
            block = anchors[start : start + QUERIES]
            most = last + 1 + max(len(partners[anchor]) for anchor in block)
            near, rows = (found.cpu().numpy() for found in top_rows(vectors[block], members, most))
            for anchor, scores, places in zip(block, near, rows, strict=True):
                kept = ~np.isin(places, [anchor, *partners[anchor]])
                yield anchor, places[kept][:last], scores[kept][:last]
            advance(len(block))
