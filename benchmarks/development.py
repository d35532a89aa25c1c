"""Does a development set choose as the test sets would? Rank agreement over the layers and read-outs of some encoders.

    python benchmarks/development.py --data-dir DATA --dev DATA/sts/stsb.dev.tsv.gz --dev clean_dev.tsv
                                     [--models builtin-base,builtin] [--pairs 300] [--max-length 64]

Of each model every layer is read by [CLS] and by the mean; each reading is an encoder. ``--pairs`` of each of the seven
test sets, drawn with a fixed seed; 0: all of them. Printed: Spearman and Kendall between the scores on a development
set and the average of the seven, the score that the chosen reading has there, and what the last layers score.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

import isotrope
from isotrope.evaluation.scored_pairs import ScoredPairs, read_pairs
from isotrope.evaluation.sts import TASKS
from isotrope.measures.correlation import spearman

Readings = dict[str, np.ndarray]


def drawn(pairs: ScoredPairs, count: int) -> ScoredPairs:
    """So many pairs, drawn with a fixed seed; 0: all."""
    if count == 0:
        return pairs
    rows = np.random.default_rng(0).permutation(len(pairs.first))[:count]
    first, second, subsets = ([side[row] for row in rows] for side in (pairs.first, pairs.second, pairs.subsets))
    return ScoredPairs(first, second, pairs.gold[rows], subsets)


def readings(model: str, texts: list[str], max_length: int) -> Readings:
    """The vectors of every layer, by [CLS] and by the mean; [texts, width] each."""
    encoder = isotrope.load(model).eval()
    order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
    found: Readings = {}
    with torch.inference_mode():
        for start in range(0, len(order), 64):
            rows = order[start : start + 64]
            tokens = encoder.tokenize([texts[row] for row in rows], max_length).to(encoder.device)
            mask = tokens.mask[..., None].float()
            for number, layer in enumerate(encoder.layers(tokens)[1:], 1):
                mean = (layer * mask).sum(dim=1) / mask.sum(dim=1)
                for name, vectors in (("cls", layer[:, 0]), ("mean", mean)):
                    place = found.setdefault(f"{model} {number} {name}", np.zeros((len(texts), layer.shape[-1]), "f4"))
                    place[rows] = vectors.float().cpu().numpy()
    return found


def score(vectors: np.ndarray, row: dict[str, int], pairs: ScoredPairs) -> float:
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = (unit[[row[text] for text in side]] for side in (pairs.first, pairs.second))
    return 100 * spearman((first * second).sum(axis=1), pairs.gold)


def main() -> None:
    from scipy.stats import kendalltau

    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data-dir", type=Path, required=True)
    options.add_argument("--dev", type=Path, action="append", required=True)
    options.add_argument("--models", default="builtin-base,builtin")
    options.add_argument("--pairs", type=int, default=300)
    options.add_argument("--max-length", type=int, default=64)
    chosen = options.parse_args()
    tests = [drawn(read_pairs(chosen.data_dir / "sts" / f"{name}.tsv.gz"), chosen.pairs) for name in TASKS.values()]
    devs = {file.name.split(".tsv")[0]: read_pairs(file) for file in chosen.dev}
    texts = sorted({text for pairs in (*tests, *devs.values()) for text in pairs.texts})
    row = {text: place for place, text in enumerate(texts)}
    read = {k: v for name in chosen.models.split(",") for k, v in readings(name, texts, chosen.max_length).items()}
    test = {name: float(np.mean([score(vectors, row, pairs) for pairs in tests])) for name, vectors in read.items()}
    print("| development set | pairs | Spearman | Kendall | tests of the chosen | of the best |")
    print("|---|---|---|---|---|---|")
    found = {}
    for dev, pairs in devs.items():
        found[dev] = {name: score(vectors, row, pairs) for name, vectors in read.items()}
        sides = [test[name] for name in read], [found[dev][name] for name in read]
        best = max(read, key=found[dev].__getitem__)
        print(
            f"| {dev} | {len(pairs.first):,} | {spearman(*map(np.array, sides)):.3f} | {kendalltau(*sides)[0]:.3f} | "
            f"{test[best]:.1f} ({best}) | {max(test.values()):.1f} |"
        )
    last = [name for name in read if name.split()[1] == max(read, key=lambda each: int(each.split()[1])).split()[1]]
    print(f"\n| read-out | {' | '.join(devs)} | tests |\n|---|{'---|' * (len(devs) + 1)}")
    for name in last:
        print(f"| {name} | {' | '.join(f'{found[dev][name]:.1f}' for dev in devs)} | {test[name]:.1f} |")


if __name__ == "__main__":
    main()
