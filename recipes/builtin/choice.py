"""One line by which encoders are chosen: Spearman on development pairs, nDCG@10 on held-out retrieval sets.

    python recipes/builtin/choice.py MODEL DEV.tsv HELD     HELD/retrieval/*: the sets of pair_sources.py

Nothing that is reported is read here.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import isotrope
from isotrope.evaluation.scored_pairs import read_pairs
from isotrope.measures.correlation import spearman


def main(model: str, dev: str, held: str) -> None:
    encoder = isotrope.load(model)
    pairs = read_pairs(Path(dev))
    first, second = (encoder.encode(list(texts), normalize_embeddings=True) for texts in (pairs.first, pairs.second))
    found = {"dev": 100 * spearman((np.asarray(first) * np.asarray(second)).sum(axis=1), np.asarray(pairs.gold))}
    scores = isotrope.evaluate(encoder, suite="retrieval", data_dir=held).scores
    print(found, scores)


if __name__ == "__main__":
    main(*sys.argv[1:])
