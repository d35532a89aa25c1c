"""What fewer dimensions and fewer bits cost: nDCG@10 on the retrieval sets, and bytes for each vector.

    python benchmarks/vector_bits.py DATA [--model builtin-static] [--dims 64,128,256] [--sets cranfield,dbpedia_small]
    python benchmarks/vector_bits.py scored_pairs.tsv [--model builtin] [--dims 64,128,256]

float32 is exact search. int8 and binary are searched by their codes; "re-scored" takes the 40 best of these by the
float vectors. A text is encoded once for all rows of the table. Of a file of scored pairs it prints the curve of the
leading dimensions: Spearman of the cosines with the scores.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import isotrope
from isotrope.data.readers import read
from isotrope.data.record_types import record_type_named
from isotrope.evaluation.retrieval import read_sets
from isotrope.evaluation.retrieval_files import RetrievalSet
from isotrope.measures.ranking_measures import ndcg
from isotrope.search.quantized import QuantizedIndex

TOP = 10
Vectors = tuple[np.ndarray, np.ndarray]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", help="the folder of evaluation data, or a file of scored pairs")
    options.add_argument("--model", default="builtin-static")
    options.add_argument("--dims", help="widths, joined by commas; default: the model's own")
    options.add_argument("--sets", help="names of sets, joined by commas; default: all with queries and documents")
    chosen = options.parse_args()
    encoder = isotrope.load(chosen.model)
    dims = [int(width) for width in chosen.dims.split(",")] if chosen.dims else [encoder.dimension]
    if Path(chosen.data).is_file():
        print_curve(encoder, chosen.data, dims)
        return
    wanted = chosen.sets.split(",") if chosen.sets else None
    sets = [one for one in read_sets(chosen.data) if one.own is None and (wanted is None or one.name in wanted)]
    whole = {one.name: (encoder.encode(one.documents), encoder.encode(one.queries)) for one in sets}
    print(f"{chosen.model}: nDCG@10 × 100")
    print("| dimensions | vectors | bytes | " + " | ".join(one.name for one in sets) + " |")
    print("|" + "---|" * (3 + len(sets)))
    for width in dims:
        cut = {name: tuple(unit(side[:, :width]) for side in pair) for name, pair in whole.items()}
        for label, rank in RANKINGS.items():
            found = [rank(*cut[one.name]) for one in sets]
            scores = [f"{score(one, rows):.1f}" for one, (rows, _) in zip(sets, found, strict=True)]
            print(f"| {width} | {label} | {found[0][1]:,.0f} | {' | '.join(scores)} |", flush=True)


def print_curve(encoder: isotrope.Encoder, path: str, dims: list[int]) -> None:
    pairs = list(read(path, record_type_named("scored-pairs")))
    sides = [encoder.encode([pair.texts[side] for pair in pairs]) for side in (0, 1)]
    print("| dimensions | Spearman × 100 |\n|---|---|")
    for width in dims:
        first, second = (unit(side[:, :width]) for side in sides)
        found = spearmanr((first * second).sum(axis=1), [float(str(pair.value)) for pair in pairs]).statistic
        print(f"| {width} | {100 * found:.1f} |")


def unit(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def exact(documents: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, float]:
    return np.argsort(-(queries @ documents.T), axis=1, kind="stable")[:, :TOP], documents[0].nbytes


def coded(precision: str, rescored: bool):
    def rank(documents: np.ndarray, queries: np.ndarray) -> tuple[np.ndarray, float]:
        index = QuantizedIndex(documents, precision)
        rows, _ = index.search(queries, TOP, rescore=4, vectors=documents if rescored else None)
        return rows, index.codes[0].nbytes

    return rank


RANKINGS = {
    "float32": exact,
    "int8": coded("int8", False),
    "int8, re-scored": coded("int8", True),
    "binary": coded("binary", False),
    "binary, re-scored": coded("binary", True),
}


def score(found: RetrievalSet, rows: np.ndarray) -> float:
    ranked = np.array(
        [[wanted.get(int(row), 0.0) for row in line] for line, wanted in zip(rows, found.gains, strict=True)]
    )
    return 100 * float(ndcg(ranked, [list(wanted.values()) for wanted in found.gains], TOP).mean())


if __name__ == "__main__":
    main()
