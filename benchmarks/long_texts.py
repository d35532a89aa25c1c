"""What a text that is longer than the model reads loses: its beginning alone, against all of it in windows.

    python benchmarks/long_texts.py DATA [--model builtin]

nDCG@10 × 100 on Cranfield, whose abstracts have 177 words on average. A window has W words and begins S words after the
one before; a document has the score of its best window, or of the mean of its windows, alone or added to that of its
beginning.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt

import isotrope
from isotrope.evaluation.retrieval_files import find_sets
from isotrope.evaluation.retrieval_scores import measured

Floats = npt.NDArray[np.float64]
WINDOWS = ((80, 40), (40, 20))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("data", type=Path)
    options.add_argument("--model", default="builtin")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")  # that texts are cut is the point
    encoder = isotrope.load(chosen.model)
    found = next(files for files in find_sets(chosen.data) if files.name == "cranfield").read()

    def vectors(texts: list[str]) -> Floats:
        return np.asarray(encoder.encode(texts, normalize_embeddings=True), dtype=np.float64)

    def ndcg(scores: Floats) -> float:
        order = np.argsort(-scores, axis=1, kind="stable")[:, :100]
        return 100 * float(measured(order, found.gains)["ndcg_10"].mean())

    queries = vectors(found.queries)
    beginning = queries @ vectors(found.documents).T
    print(f"the beginning alone: {ndcg(beginning):.1f}", flush=True)
    for width, step in WINDOWS:
        windows, owners = cut(found.documents, width, step)
        rows = vectors(windows)
        best = np.full_like(beginning, -1.0)
        for column, owner in enumerate(owners):
            np.maximum(best[:, owner], queries @ rows[column], out=best[:, owner])
        means = np.zeros((len(found.documents), rows.shape[1]))
        np.add.at(means, owners, rows)
        mean = queries @ (means / np.linalg.norm(means, axis=1, keepdims=True)).T
        print(
            f"windows of {width} words, every {step}: best {ndcg(best):.1f}, mean {ndcg(mean):.1f}, "
            f"best with the beginning {ndcg(best + beginning):.1f}",
            flush=True,
        )


def cut(texts: list[str], width: int, step: int) -> tuple[list[str], npt.NDArray[np.int64]]:
    """The windows of all texts, and whose each is; a text of few words is one window."""
    windows, owners = [], []
    for owner, text in enumerate(texts):
        words = text.split()
        for start in range(0, max(1, len(words) - step + 1), step):
            windows.append(" ".join(words[start : start + width]))
            owners.append(owner)
    return windows, np.array(owners)


if __name__ == "__main__":
    main()
