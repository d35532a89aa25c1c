"""How well a linear classifier reads sentiment and emotion from an encoder, on sets that no table reports.

    feelings.py MODEL DATA      accuracy × 100, five folds, of four sets of DATA/emotion

Logistic regression over standardised unit vectors; the best of three penalties on the same folds, so compare models
by it and nothing else.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import isotrope
from isotrope.data.readers import column

SETS = ("ss_twitter", "ss_youtube", "se0714", "psychexp")
PENALTIES = (0.003, 0.03, 0.3)
MOST = 3_000  # rows of a set


def main(model: str, data: Path) -> None:
    encoder, found = isotrope.load(model), []
    for name in SETS:
        labels, texts = (column(data / "emotion" / f"{name}.tsv.gz", one)[:MOST] for one in ("label", "sentence"))
        vectors = np.asarray(encoder.encode(list(texts), normalize_embeddings=True))
        scores = [accuracy(vectors, labels, penalty) for penalty in PENALTIES]
        found.append(max(scores))
        print(f"{name} {found[-1]:.1f}", flush=True)
    print(f"feelings {np.mean(found):.2f}")


def accuracy(vectors: np.ndarray, labels: list[str], penalty: float) -> float:
    classifier = make_pipeline(StandardScaler(), LogisticRegression(C=penalty, max_iter=500))
    return float(100 * cross_val_score(classifier, vectors, labels, cv=5).mean())


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
