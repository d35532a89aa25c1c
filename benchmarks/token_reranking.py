"""What re-ranking by tokens gains: shares and depths on development sets, the chosen ones alone on reported sets.

    python benchmarks/token_reranking.py DATA [--model builtin] [--queries 150]     shares and depths
    python benchmarks/token_reranking.py DATA --reported                            what search --rerank gives
    python benchmarks/token_reranking.py DATA --stored cranfield                    what index --tokens saves
    … --stemmer none                                                                by words as they are

nDCG@10 × 100 of the first ten hits. Each set is indexed by `isotrope.index` and searched by hybrid; then the first N
hits are ordered anew (search/token_reranking.py). The development sets are those of benchmarks/fusion.py: none is
reported.
"""

from __future__ import annotations

import argparse
import itertools
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from fusion import FIRST, Floats, Found, apart, development, quality, reported
from search_modes import indexed, rows_of

import isotrope
from isotrope.search import token_reranking
from isotrope.search.token_reranking import SHARES, Reranker

DEPTHS, DEPTH = (20, 30, 60), 30
QUARTERS = [share for share in itertools.product(range(5), repeat=3) if sum(share) == 4 and share[0] in (1, 2, 3)]
PLAIN = (4, 0, 0)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path)
    options.add_argument("--model", default="builtin")
    options.add_argument("--queries", type=int, default=150, help="of each development set")
    options.add_argument("--reported", action="store_true")
    options.add_argument("--stored", metavar="SET", help="a reported set: texts read again against stored tokens")
    options.add_argument("--stemmer", default="auto")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")  # that a text is longer than the model reads
    encoder = isotrope.load(chosen.model)
    if chosen.stored:
        stored(first(reported(chosen.data)[chosen.stored], chosen.queries), encoder, chosen.stemmer)
    elif chosen.reported:
        report(reported(chosen.data), encoder, chosen.stemmer)
    else:
        sets = {name: first(found, chosen.queries) for name, found in development(chosen.data).items()}
        choose(sets, encoder, chosen.stemmer)


def first(found: Found, count: int) -> Found:
    return Found(found.queries[:count], found.documents, found.gains[:count])


def choose(sets: dict[str, Found], encoder: isotrope.Encoder, stemmer: str) -> None:
    """Every share in quarters that leaves the search a say, at every depth."""
    token_reranking.KEPT = 8 << 30  # a text is read once for all depths
    scores: dict[tuple[int, tuple[int, ...]], list[Floats]] = {}
    for found in sets.values():
        with indexed(found, encoder, stemmer=stemmer) as (index, _):
            hits = index.search(found.queries, max(DEPTHS))
        reranker = Reranker(encoder)
        for depth in DEPTHS:
            some = [one[:depth] for one in hits]
            threes = list(reranker.standardised(found.queries, some))
            for share in (PLAIN, *QUARTERS):
                orders = (order(share, three) for three in threes)
                ranked = ([one[place] for place in places] for one, places in zip(some, orders, strict=True))
                scores.setdefault((depth, share), []).append(quality(map(rows_of, ranked), found))
    print("| depth | quarters of before, words, states | " + " | ".join(sets) + " | mean | − hybrid |")
    for (depth, share), gained in scores.items():
        cells = " | ".join(f"{one.mean():.1f}" for one in gained)
        gap = apart([one - plain for one, plain in zip(gained, scores[depth, PLAIN], strict=True)])
        mark = " (chosen)" if depth == DEPTH and np.array_equal(np.array(share) / 4, SHARES) else ""
        print(f"| {depth} | {share}{mark} | {cells} | {np.mean([one.mean() for one in gained]):.2f} | {gap} |")


def order(share: tuple[int, ...], three: Floats) -> list[int]:
    return np.argsort(-(np.array(share) @ three), kind="stable").tolist()


def report(sets: dict[str, Found], encoder: isotrope.Encoder, stemmer: str) -> None:
    ways: dict[str, dict[str, Any]] = {
        "dense": {"mode": "dense"},
        "lexical": {"mode": "lexical"},
        "hybrid": {},
        f"hybrid, --rerank {DEPTH}": {"rerank": DEPTH},
    }
    *_, hybrid, reranked = ways
    print("| set | " + " | ".join(ways) + " | − hybrid | − the better part | ms a query: hybrid | re-ranked |")
    for name, found in sets.items():
        scores, spent = {}, {}
        with indexed(found, encoder, stemmer=stemmer) as (index, _):
            index.search(found.queries[:1])  # opens what is opened once
            for way, options in ways.items():
                begun = time.perf_counter()
                hits = index.search(found.queries, FIRST, **options)
                spent[way] = 1000 * (time.perf_counter() - begun) / len(found.queries)
                scores[way] = quality(map(rows_of, hits), found)
        better = max(("dense", "lexical"), key=lambda way: scores[way].mean())
        cells = [f"{score.mean():.1f}" for score in scores.values()]
        cells += [apart([scores[reranked] - scores[other]]) for other in (hybrid, better)]
        cells += [f"{spent[way]:.0f}" for way in (hybrid, reranked)]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def stored(found: Found, encoder: isotrope.Encoder, stemmer: str) -> None:
    """Both ways over one index, query by query in turns; what was read stays in memory for later queries."""
    with indexed(found, encoder, tokens=True, stemmer=stemmer) as (index, made):
        index.search(found.queries[:1], FIRST, rerank=DEPTH)  # opens what is opened once
        ways = {"read": lambda row: None, "stored": index.engine.tokens_of}
        hits: dict[str, list[Any]] = {way: [] for way in ways}
        spent = dict.fromkeys(ways, 0.0)
        rerankers = {way: Reranker(encoder) for way in ways}
        for query in found.queries:
            before = index.search(query, DEPTH)
            for way, tokens in ways.items():
                begun = time.perf_counter()
                hits[way] += rerankers[way].reordered([query], before, tokens)
                spent[way] += 1000 * (time.perf_counter() - begun) / len(found.queries)
    changes = [
        abs(hit.score - other[hit.line])
        for hits_read, hits_stored in zip(hits["read"], hits["stored"], strict=True)
        for other in [{hit.line: hit.score for hit in hits_stored}]
        for hit in hits_read
    ]
    print("| tokens | nDCG@10 | ms a query |")
    for way, some in hits.items():
        score = quality((rows_of(one[:FIRST]) for one in some), found).mean()
        print(f"| {way} | {score:.1f} | {spent[way]:.0f} |")
    print(
        f"ratio {spent['read'] / spent['stored']:.1f}; scores differ by {np.mean(changes):.4f}, at most "
        f"{max(changes):.3f}; {(made.size or 0) / 1e6 / len(found.documents) * 1000:.1f} kB a text"
    )


if __name__ == "__main__":
    main()
