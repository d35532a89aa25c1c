"""The STS scores of one encoder, judged by isotrope and by hand with sentence-transformers and scipy: they must agree
to 0.01.

python benchmarks/judge.py [MODEL] --data-dir DATA
"""

from __future__ import annotations

import argparse
import csv
import gzip
import tempfile
from pathlib import Path

import numpy as np
from scipy import stats

import isotrope
from isotrope.evaluation.sts import TASKS


def by_hand(folder: str, data: Path) -> dict[str, float]:
    """Nothing of isotrope's: its reader, its encoder and its judge are all replaced."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(folder)
    scores = {}
    for task, name in TASKS.items():
        with gzip.open(data / "sts" / f"{name}.tsv.gz", "rt", encoding="utf-8", newline="") as source:
            rows = list(csv.DictReader(source, delimiter="\t", quoting=csv.QUOTE_NONE))
        first, second = (
            model.encode([row[side] for row in rows], batch_size=64) for side in ("sentence1", "sentence2")
        )
        cosine = (first * second).sum(1) / np.linalg.norm(first, axis=1) / np.linalg.norm(second, axis=1)
        scores[task] = 100 * float(stats.spearmanr(cosine, [float(row["score"]) for row in rows]).statistic)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="builtin")
    parser.add_argument("--data-dir", type=Path, required=True)
    options = parser.parse_args()
    encoder = isotrope.load(options.model)
    ours = isotrope.evaluate(encoder, data_dir=options.data_dir).scores["sts"]
    with tempfile.TemporaryDirectory() as place:
        encoder.save(Path(place) / "model")
        theirs = by_hand(str(Path(place) / "model"), options.data_dir)
    print(f"{'task':8} {'isotrope':>9} {'by hand':>9} {'gap':>8}")
    for task in TASKS:
        own = ours[task]["spearman"]
        print(f"{task:8} {own:9.3f} {theirs[task]:9.3f} {abs(own - theirs[task]):8.4f}")
    print(f"{'average':8} {ours['average']['spearman']:9.3f} {np.mean(list(theirs.values())):9.3f}")


if __name__ == "__main__":
    main()
