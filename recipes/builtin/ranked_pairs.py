"""Queries and passages with scores made here: what vectors and words find together knows more than the vectors alone.

    ranked_pairs.py WORK MODEL     sources of search → WORK/sources/ranked.tsv, for `cosent`

    score = z(cosine) + ½ z(BM25 / the largest BM25 of its query) + 1 where the passage is the query's own

The candidates of a query are drawn from the first hundred hits of hybrid search among all passages of the pool: three
of the first five, two of the next 25, one of the rest. BM25 of different queries does not compare, so it is divided by
the best one of the query. MODEL finds the candidates; an int8 export is fast enough. Everything is drawn with a fixed
seed. Neither a held-out nor a reported set is read.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from label_pairs import standard, write

import isotrope
from isotrope.data.readers import column
from isotrope.files import written_file
from isotrope.search.hits import Hit

QUERIES = 6_000  # of each source
PASSAGES = {"questions": 40_000, "titles": 30_000}  # at most
DEPTH = 100
TAKEN = ((0, 5, 3), (5, 30, 2), (30, DEPTH, 1))  # from, to, how many
WORD_WEIGHT, OWN = 0.5, 1.0
AT_ONCE = 500  # queries


def ranked(work: Path, model: str) -> None:
    rng, pool, wanted = random.Random(0), set[str](), []
    for name, most in PASSAGES.items():
        rows = list(
            zip(*(column(work / "sources" / f"{name}.tsv.xz", side) for side in ("anchor", "positive")), strict=True)
        )
        rng.shuffle(rows)
        pool.update(positive for _, positive in rows[:most])
        wanted += rows[:QUERIES]
    with written_file(work / "pool.txt") as temporary:
        temporary.write_text("".join(f"{text}\n" for text in sorted(pool)), encoding="utf-8")
    isotrope.index(model, work / "pool.txt", work / "pool-index")
    found = isotrope.open_index(work / "pool-index")
    rows = []
    for start in range(0, len(wanted), AT_ONCE):
        part = wanted[start : start + AT_ONCE]
        hits = found.search([query for query, _ in part], top=DEPTH)
        rows += [
            row for (query, own), of_query in zip(part, hits, strict=True) for row in drawn(query, own, of_query, rng)
        ]
        print(f"{start + len(part):,} of {len(wanted):,} queries", file=sys.stderr)
    queries, texts, *numbers = zip(*rows, strict=True)
    cosine, words, own = (np.array(side, dtype=np.float64) for side in numbers)
    scores = standard(cosine) + WORD_WEIGHT * standard(words) + OWN * own
    scores = 5 * (scores - scores.min()) / np.ptp(scores)
    lines = list(zip(queries, texts, (f"{score:.4f}" for score in scores), strict=True))
    rng.shuffle(lines)
    write(work / "sources" / "ranked.tsv", ("sentence1", "sentence2", "score"), lines)


def drawn(query: str, own: str, hits: Sequence[Hit], rng: random.Random) -> list[tuple[str, str, float, float, bool]]:
    most = max((hit.bm25 or 0.0 for hit in hits), default=0.0) or 1.0
    others = [hit for hit in hits if hit.text != own]
    taken = [hit for hit in hits if hit.text == own]
    for first, last, count in TAKEN:
        among = others[first:last]
        taken += rng.sample(among, min(count, len(among)))
    return [(query, hit.text, hit.cosine or 0.0, (hit.bm25 or 0.0) / most, hit.text == own) for hit in taken]


if __name__ == "__main__":
    work, model = sys.argv[1:]
    ranked(Path(work), model)
