"""Hard negatives for pairs:

texts that an encoder takes for near, near enough to teach and not so near that they may be right.
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

from isotrope.data.sources import find_records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.loading import load
from isotrope.errors import InputError
from isotrope.files import written_file
from isotrope.progress import bar
from isotrope.search.exact import top_rows

FIRST, LAST = 10, 50  # ranks; the nearest few are often right answers that nobody marked
QUERIES = 1024  # anchors searched at once


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
        return {
            "triples": len(self.triples),
            **{name: value for name, value in vars(self).items() if name != "triples"},
        }

    def write(self, path: str | os.PathLike[str]) -> None:
        check_output(path)
        with written_file(path) as temporary, open(temporary, "w", encoding="utf-8") as target:
            target.write("anchor\tpositive\tnegative\n")
            target.writelines(
                "\t".join(triple) + "\n" for triple in self.triples
            )  # texts hold no tabs: white space was folded


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
    text itself are none. One of the ranks ``first`` to ``last`` is drawn. With ``margin`` a candidate must score at
    least so far below the pair's positive, and ``first`` is 1 unless it is given; without, it is 10.
    """
    first = first if first is not None else FIRST if margin is None else 1
    if not 1 <= first <= last:
        raise InputError(f"The window of ranks begins at 1 or later and ends no earlier; {first} to {last} was given.")
    if margin is not None and not 0 <= margin < 2:
        raise InputError(f"margin is a difference of cosines, from 0 to 2; {margin} was given.")
    if output is not None:
        check_output(output)
    source = find_records(pairs, ("pairs",), columns, split=False)
    read = [record.texts for record in source.records]
    whole = [(anchor, positive) for anchor, positive in read if anchor and positive]
    kept = list(dict.fromkeys(whole))
    if not kept:
        raise InputError(f"{source.where}: no pairs found.")
    encoder = model if isinstance(model, Encoder) else load(model)
    chosen, scores = _search(kept, encoder, (first, last), margin, seed)
    triples = [(*pair, negative) for pair, negative in zip(kept, chosen, strict=True) if negative]
    if not triples:
        hint = "lower --first" if margin is None else "lower --margin or raise --last"
        raise InputError(
            f"{source.where}: none of the {len(kept):,} pairs has a candidate of rank {first} to {last} that will do; {hint}."
        )
    found = Mined(
        triples,
        pairs=len(read),
        empty=len(read) - len(whole),
        duplicates=len(whole) - len(kept),
        too_near=chosen.count(""),
        too_few=chosen.count(None),
        positive_score=float(np.mean([own for (own, _), negative in zip(scores, chosen, strict=True) if negative])),
        negative_score=float(np.mean([other for (_, other), negative in zip(scores, chosen, strict=True) if negative])),
    )
    if output is not None:
        found.write(output)
    return found


def _search(
    pairs: list[tuple[str, str]], encoder: Encoder, ranks: tuple[int, int], margin: float | None, seed: int
) -> tuple[list[str | None], list[tuple[float, float]]]:
    """The negative of each pair ("":

    all too near; None: too few texts), and the scores of its positive and its negative.
    """
    numbers = {text: number for number, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
    texts = list(numbers)
    vectors = torch.from_numpy(encoder.encode(texts, normalize_embeddings=True)).to(encoder.device)
    pool = np.array([numbers[text] for text in dict.fromkeys(positive for _, positive in pairs)])
    partners: dict[int, set[int]] = defaultdict(set)
    pairs_of: dict[int, list[int]] = defaultdict(list)
    for place, (anchor, positive) in enumerate(pairs):
        a, p = numbers[anchor], numbers[positive]
        partners[a].add(p)
        partners[p].add(a)
        pairs_of[a].append(place)
    own = (vectors[[numbers[a] for a, _ in pairs]] * vectors[[numbers[p] for _, p in pairs]]).sum(dim=1).tolist()
    dice = np.random.default_rng(seed).random(len(pairs))  # one a pair, so that the choice does not hang on the blocks
    chosen: list[str | None] = [None] * len(pairs)
    scores = [(score, float("nan")) for score in own]
    for number, rows, near in _candidates(list(pairs_of), vectors, pool, partners, ranks[1]):
        rows, near = rows[ranks[0] - 1 :], near[ranks[0] - 1 :]
        for place in pairs_of[number]:
            fit = np.arange(len(rows)) if margin is None else np.flatnonzero(near <= own[place] - margin)
            if len(fit):
                drawn = fit[int(dice[place] * len(fit))]
                chosen[place], scores[place] = texts[rows[drawn]], (own[place], float(near[drawn]))
            elif len(rows):
                chosen[place] = ""
    return chosen, scores


def _candidates(
    anchors: list[int], vectors: torch.Tensor, pool: np.ndarray[Any, Any], partners: dict[int, set[int]], last: int
) -> Iterator[tuple[int, np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """Of each anchor the ``last`` nearest texts of the pool that are neither itself nor its partners, and their scores."""
    members = vectors[torch.from_numpy(pool)]
    with bar("mining", len(anchors)) as advance:
        for start in range(0, len(anchors), QUERIES):
            block = anchors[start : start + QUERIES]
            most = last + 1 + max(len(partners[anchor]) for anchor in block)
            near, rows = (found.cpu().numpy() for found in top_rows(vectors[block], members, most))
            for anchor, scores, places in zip(block, near, pool[rows], strict=True):
                kept = ~np.isin(places, [anchor, *partners[anchor]])
                yield anchor, places[kept][:last], scores[kept][:last]
            advance(len(block))
