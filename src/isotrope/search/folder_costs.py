"""What fewer dimensions and fewer bits cost in a folder: recall, bytes and time of each way to search it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from isotrope.search.folder_engine import FolderEngine
from isotrope.search.index_report import Cost
from isotrope.search.recall_probe import TOP, Probes
from isotrope.search.vector_maker import VectorMaker


def measure(engine: FolderEngine, probes: Probes, maker: VectorMaker) -> Iterator[Cost]:
    """Recall and time of each way to search this index, against exact float32 in all dimensions."""
    gathered = [found for block in engine.rows.blocks if (found := block.probe()) is not None]
    exact, queries = probes.exact(gathered), maker.kept(probes.vectors)
    width, allowed = engine.manifest.dimension, engine.live
    label = f"float32, {width} of {maker.facts.width} dimensions" if maker.is_cut else "float32, exact"

    def cost(name: str, size: int, search: Any) -> Cost:
        begun = time.perf_counter()
        found = search()
        spent = 1000 * (time.perf_counter() - begun) / len(queries)
        return Cost(name, size, probes.recall(exact, found), spent)

    yield cost(label, 4 * width, lambda: [_first(one) for one in engine.exact(queries, TOP + 1, allowed)])
    codes = engine.codes
    if codes is not None:
        size, precision = int(codes.codes[0].nbytes), engine.manifest.precision
        top = min(TOP + 1, len(codes))
        yield cost(precision, size, lambda: codes.search(queries, top, rescore=1)[0].tolist())
        yield cost(f"{precision}, re-scored", size, lambda: codes.search(queries, top, vectors=engine.rows)[0].tolist())


def _first(ranking: list[tuple[int, float]]) -> list[int]:
    return [row for row, _ in ranking]
