"""What `isotrope search` finds by vectors, by words and by both: nDCG@10 on the retrieval sets, as a user would get it.

    python benchmarks/search_modes.py DATA [--model builtin] [--sets cranfield,msmarco_small] [--precision binary]

Each set is indexed into a folder by `isotrope.index` and searched by `isotrope.open_index`. The judge's retrieval suite
ranks the same documents with its own BM25, which takes English stop words out.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np

import isotrope
from isotrope.evaluation.retrieval import read_sets
from isotrope.evaluation.retrieval_files import RetrievalSet
from isotrope.measures.ranking_measures import ndcg

TOP = 10
MODES = ("dense", "lexical", "hybrid")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", help="the folder of evaluation data")
    options.add_argument("--model", default="builtin")
    options.add_argument("--sets", help="names of sets, joined by commas; default: all with queries and documents")
    options.add_argument("--precision", default="float32")
    chosen = options.parse_args()
    encoder = isotrope.load(chosen.model)
    wanted = chosen.sets.split(",") if chosen.sets else None
    print(f"{chosen.model}, {chosen.precision}: nDCG@10 × 100, and milliseconds a query")
    print("| set | documents | " + " | ".join(MODES) + " | index |")
    print("|" + "---|" * (3 + len(MODES)))
    for one in read_sets(chosen.data):
        if one.own is None and (wanted is None or one.name in wanted):
            with tempfile.TemporaryDirectory() as folder:
                print(line(one, encoder, Path(folder), chosen.precision), flush=True)


def line(found: RetrievalSet, encoder: isotrope.Encoder, folder: Path, precision: str) -> str:
    text = folder / "documents.jsonl"
    rows = ({"text": document, "row": row} for row, document in enumerate(found.documents))
    text.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    made = isotrope.index(encoder, text, folder / "index", precision=precision)
    cells = []
    with isotrope.open_index(folder / "index", encoder) as index:
        index.search(found.queries[:2])  # opens what is opened once
        for mode in MODES:
            begun = time.perf_counter()
            hits = index.search(found.queries, TOP, mode)
            spent = 1000 * (time.perf_counter() - begun) / len(found.queries)
            cells.append(
                f"{score(found, [[hit.columns['row'] for hit in some] for some in hits]):.1f} ({spent:.1f} ms)"
            )
    return f"| {found.name} | {made.rows:,} | {' | '.join(cells)} | {made.seconds:.0f} s, {made.size / 1e6:.1f} MB |"


def score(found: RetrievalSet, rows: list[list[int]]) -> float:
    gains = np.zeros((len(rows), TOP))
    for number, (some, wanted) in enumerate(zip(rows, found.gains, strict=True)):
        gains[number, : len(some)] = [wanted.get(row, 0.0) for row in some]
    return 100 * float(ndcg(gains, [list(wanted.values()) for wanted in found.gains], TOP).mean())


if __name__ == "__main__":
    main()
