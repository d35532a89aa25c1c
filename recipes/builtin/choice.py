"""What encoders are chosen by, and the goal table of the one that was chosen.

    choice.py choose MODEL DEV.tsv HELD     Spearman on development pairs, the area under the curve on the labelled
                                            pairs of HELD/pairs (foreign_pairs.py), nDCG@10 on the held-out sets
    choice.py best SCORES…                  of some files that `choose` printed, the name of the best by their sum
    choice.py goals MODEL DATA              the reported sets: retrieval, STS, and transfer where DATA has it

nDCG@10 of TF-IDF, BM25, the encoder, and the encoder with BM25: by reciprocal ranks, Σ 1 / (60 + rank) over both lists,
and by standardised scores, as ``isotrope search`` joins them (measures/score_fusion.py).
``choose`` reads nothing that is reported.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from sklearn.metrics import roc_auc_score

import isotrope
from isotrope.data.readers import column
from isotrope.evaluation.bm25 import TITLE
from isotrope.evaluation.ranked_documents import hybrid_order, lexical_orders, nearest
from isotrope.evaluation.retrieval_files import RetrievalSet, find_sets
from isotrope.evaluation.retrieval_scores import measured
from isotrope.evaluation.scored_pairs import read_pairs
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.measures.correlation import spearman

CONSTANT = 60
Rows = npt.NDArray[np.int64]


def choose(model: str, dev: str, held: str) -> None:
    encoder, pairs = isotrope.load(model), read_pairs(Path(dev))
    print(f"dev {100 * spearman(cosines(encoder, pairs.first, pairs.second), pairs.gold):.2f}")
    for file in sorted((Path(held) / "pairs").glob("*.tsv")):
        label, first, second = (column(file, name) for name in ("label", "sentence1", "sentence2"))
        print(f"{file.stem} {100 * roc_auc_score([int(one) for one in label], cosines(encoder, first, second)):.2f}")
    print_sets(encoder, Path(held))


def cosines(encoder: isotrope.Encoder, *sides: Sequence[str]) -> npt.NDArray[np.float32]:
    first, second = (np.asarray(encoder.encode(list(texts), normalize_embeddings=True)) for texts in sides)
    found: npt.NDArray[np.float32] = (first * second).sum(axis=1)
    return found


def best(*files: str) -> None:
    print(max(map(Path, files), key=total).name)


def total(file: Path) -> float:
    """Spearman on the pairs, the area on the labelled ones, and nDCG@10 of the vectors alone on each set."""
    found = re.findall(r"^\w+ (\d+\.\d+)$|  encoder (\S+)", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return sum(float(pairs or sets) for pairs, sets in found)


def goals(model: str, data: str) -> None:
    encoder = isotrope.load(model)
    print_sets(encoder, Path(data))
    suites = [suite for suite in ("sts", "transfer") if (Path(data) / suite).is_dir()]
    for suite in suites:
        print(isotrope.evaluate(encoder, suite=suite, data_dir=data).table())


def print_sets(encoder: isotrope.Encoder, folder: Path) -> None:
    for files in find_sets(folder):
        found = files.read()
        orders = rankings(found, encoder)
        scores = {name: 100 * float(measured(order, found.gains)["ndcg_10"].mean()) for name, order in orders.items()}
        print(f"{found.name:16}" + "".join(f"  {name} {score:.1f}" for name, score in scores.items()), flush=True)


def rankings(found: RetrievalSet, encoder: isotrope.Encoder) -> dict[str, Rows]:
    vectors = TextVectors.encoded(encoder, {*found.documents, *found.queries}, normalize=True)
    by_encoder, by_words = nearest(found, vectors, encoder.device), lexical_orders(found)
    by_ranks, by_scores = fused(by_encoder.rows, by_words[TITLE]), hybrid_order(found, by_encoder, vectors)
    return {**by_words, "encoder": by_encoder.rows, "both by ranks": by_ranks, "both by scores": by_scores}


def fused(*orders: Rows) -> Rows:
    """The best rows by the sum of reciprocal ranks; of equal ones that of the first list."""
    joined = []
    for lists in zip(*(order.tolist() for order in orders), strict=True):
        gained: dict[int, float] = {}
        for rows in lists:
            for rank, row in enumerate(rows, 1):
                gained[row] = gained.get(row, 0.0) + 1 / (CONSTANT + rank)
        joined.append(sorted(gained, key=lambda row: -gained[row])[: len(lists[0])])
    return np.array(joined)


if __name__ == "__main__":
    verb, *rest = sys.argv[1:]
    {"choose": choose, "best": best, "goals": goals}[verb](*rest)
