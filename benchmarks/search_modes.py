"""What `isotrope search` finds by vectors, by words and by both: nDCG@10 on the retrieval sets, as a user would get it.

    python benchmarks/search_modes.py DATA [--model builtin] [--sets cranfield,msmarco_small] [--precision binary]
    python benchmarks/search_modes.py DATA --passages 80 [--development --sets textbooks]
    python benchmarks/search_modes.py DATA --stemmer none

Each set is indexed into a folder by `isotrope.index` and searched by `isotrope.open_index`. The judge's retrieval suite
ranks the same documents with its own BM25, which takes English stop words out and knows no stems. ``--development``
takes the sets of benchmarks/fusion.py, which are not reported.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fusion import FIRST, Found, development, quality, reported

import isotrope
from isotrope.search.hits import Hit
from isotrope.search.index_report import Indexed
from isotrope.search.opened_index import SearchIndex

MODES = ("dense", "lexical", "hybrid")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path, help="the folder of evaluation data")
    options.add_argument("--model", default="builtin")
    options.add_argument("--sets", help="names of sets, joined by commas; default: all with queries and documents")
    options.add_argument("--precision", default="float32")
    options.add_argument("--passages", type=int, help="words of a passage; default: whole texts")
    options.add_argument("--stemmer", default="auto")
    options.add_argument("--development", action="store_true")
    chosen = options.parse_args()
    encoder = isotrope.load(chosen.model)
    built = {name: getattr(chosen, name) for name in ("precision", "passages", "stemmer")}
    wanted = chosen.sets.split(",") if chosen.sets else None
    print(f"{chosen.model}, {chosen.precision}: nDCG@10 × 100, and milliseconds a query")
    print("| set | rows | " + " | ".join(MODES) + " | index |")
    print("|" + "---|" * (3 + len(MODES)))
    for name, found in (development if chosen.development else reported)(chosen.data).items():
        if wanted is None or name in wanted:
            print(line(name, found, encoder, **built), flush=True)


def line(name: str, found: Found, encoder: isotrope.Encoder, **options: Any) -> str:
    cells = []
    with indexed(found, encoder, **options) as (index, made):
        index.search(found.queries[:2])  # opens what is opened once
        for mode in MODES:
            begun = time.perf_counter()
            hits = index.search(found.queries, FIRST, mode)
            spent = 1000 * (time.perf_counter() - begun) / len(found.queries)
            cells.append(f"{quality(map(rows_of, hits), found).mean():.1f} ({spent:.1f} ms)")
    return f"| {name} | {made.rows:,} | {' | '.join(cells)} | {made.seconds:.0f} s, {(made.size or 0) / 1e6:.1f} MB |"


@contextmanager
def indexed(found: Found, encoder: isotrope.Encoder, **options: Any) -> Iterator[tuple[SearchIndex, Indexed]]:
    """An index of the documents of a set, for as long as the block runs."""
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "documents.jsonl"
        rows = ({"text": document, "row": row} for row, document in enumerate(found.documents))
        text.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        made = isotrope.index(encoder, text, Path(folder) / "index", **options)
        with isotrope.open_index(Path(folder) / "index", encoder) as index:
            yield index, made


def rows_of(hits: list[Hit]) -> list[int]:
    return [int(hit.columns["row"]) for hit in hits]


if __name__ == "__main__":
    main()
