"""Adapt `builtin` to a domain, take the change back in part: what is won on other text, what is lost on one's own?

    python benchmarks/kept_share.py FOLDER CLEAN.tsv FOREIGN [--dialogues dialog_sgd.txt.xz] [--seeds 1,2]
        [--shares 0,0.4,0.6,0.8,1] [--options '--max-steps 60']

Two domains: the first paragraph of a docstring must find the second (packages that Isotrope stands on, as they are
installed), and a turn of a dialogue must find the reply. A fifth of the files, and of the dialogues, is held out; 5,000
pairs of the others are trained on. Each run is `isotrope train PAIRS`. Of its model and `builtin` the script makes
θ = share · trained + (1 − share) · start, as `--kept-share` does. MRR × 100 among 1,000 held-out pairs of either
domain: `own` is the one trained on, `other` the one that is not. `clean` is Spearman × 100 on CLEAN.tsv of
recipes/development/clean_dev.py; mrpc, rte and scitail are 100 × the area under the curve on the first 800 pairs of the
files that foreign_pairs.py wrote to FOREIGN. None is a test set.
"""

from __future__ import annotations

import argparse
import ast
import lzma
import random
import subprocess
import sys
import sysconfig
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

import isotrope
from isotrope.data.readers import column
from isotrope.training.tactics import wise_ft

PACKAGES = ("torch", "transformers", "scipy", "sklearn", "numpy", "matplotlib", "networkx", "sympy", "nltk")
CODE = ("--", ">>>", "Args:", "Parameters", "Returns", "::", "http")
TRAIN, TEST, FOREIGN = 5000, 1000, 800
COLUMNS = ("own", "other", "clean", "mrpc", "rte", "scitail")

Pair = tuple[str, str]
Groups = list[list[Pair]]  # pairs of one file or one dialogue: held out together


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("clean", type=Path)
    options.add_argument("foreign", type=Path)
    options.add_argument("--dialogues", type=Path, default=Path("data/corpora/dialog_sgd.txt.xz"))
    options.add_argument("--seeds", default="1,2")
    options.add_argument("--shares", default="0,0.4,0.6,0.8,1")
    options.add_argument("--options", default="--max-steps 60")
    chosen = options.parse_args()
    domains = {"docstrings": docstrings(), "dialogues": dialogues(chosen.dialogues)}
    held = {name: write(chosen.folder, name, groups) for name, groups in domains.items()}
    print(f"{'domain':12}{'seed':>5}{'share':>7}" + "".join(f"{name:>9}" for name in COLUMNS), flush=True)
    start: dict[str, dict[str, float]] = {}
    for seed in chosen.seeds.split(","):
        for name in domains:
            model = adapted(chosen.folder, name, seed, chosen.options)
            for share in map(float, chosen.shares.split(",")):
                if share or name not in start:
                    found = judged(between(share, model), name, held, chosen)
                    start.setdefault(name, found) if not share else None
                show(name, seed, share, found if share else start[name])


def docstrings() -> Groups:
    warnings.simplefilter("ignore")
    root = Path(sysconfig.get_paths()["purelib"])
    files = [file for package in PACKAGES for file in sorted((root / package).rglob("*.py"))]
    return [list(described(file.read_text(encoding="utf-8", errors="replace"))) for file in files]


def described(source: str) -> Iterator[Pair]:
    """(first paragraph, second paragraph) of docstrings that have both in prose."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
            paragraphs = [" ".join(one.split()) for one in (ast.get_docstring(node) or "").split("\n\n")][:2]
            if len(paragraphs) == 2 and 20 <= len(paragraphs[0]) <= 150 and prose(paragraphs[1]):
                yield paragraphs[0], paragraphs[1]


def prose(text: str) -> bool:
    letters = sum(character.isalpha() or character == " " for character in text)
    return 60 <= len(text) <= 600 and letters > 0.85 * len(text) and not any(mark in text for mark in CODE)


def dialogues(file: Path) -> Groups:
    talks = [talk.split("\n") for talk in lzma.decompress(file.read_bytes()).decode().strip().split("\n\n")]
    return [list(zip(talk[::2], talk[1::2], strict=False)) for talk in talks]


def write(folder: Path, name: str, groups: Groups) -> list[Pair]:
    """The training pairs to a file; gives those held out. No text stands twice on one side."""
    random.Random(0).shuffle(groups)
    seen: tuple[set[str], set[str]] = set(), set()
    sides: tuple[list[Pair], list[Pair]] = [], []
    for number, group in enumerate(groups):
        for pair in group:
            if not any(text in known for text, known in zip(pair, seen, strict=True)):
                sides[number % 5 > 0].append(pair)
                for text, known in zip(pair, seen, strict=True):
                    known.add(text)
    held, train = (random.Random(0).sample(side, size) for side, size in zip(sides, (TEST, TRAIN), strict=True))
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["anchor\tpositive", *("\t".join(pair) for pair in train)]
    (folder / f"{name}.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{name}: {len(train):,} pairs to train on, {len(held):,} held out", flush=True)
    return held


def adapted(folder: Path, name: str, seed: str, options: str) -> Path:
    run = folder / f"{name}-{seed}"
    command = ["train", f"{folder / name}.tsv", "--output", str(run), "--seed", seed, "--no-final-table"]
    if not run.exists():
        began = time.perf_counter()
        subprocess.run([sys.executable, "-m", "isotrope", *command, *options.split()], check=True, stdout=sys.stderr)
        print(f"isotrope {' '.join([*command, options])}: {time.perf_counter() - began:.0f} s", flush=True)
    return run


def between(share: float, run: Path) -> isotrope.Encoder:
    start, trained = isotrope.load("builtin", device="cpu"), isotrope.load(run, device="cpu")
    mixed = wise_ft.between(start.state_dict(), trained.state_dict(), share)
    start.load_state_dict(mixed)
    return start


def judged(
    encoder: isotrope.Encoder, own: str, held: dict[str, list[Pair]], chosen: argparse.Namespace
) -> dict[str, float]:
    found = {("own" if name == own else "other"): mrr(encoder, pairs) for name, pairs in held.items()}
    gold = [float(score) for score in column(chosen.clean, "score")]
    found["clean"] = 100 * float(spearmanr(gold, cosines(encoder, chosen.clean, len(gold))).statistic)
    for name in ("mrpc", "rte", "scitail"):
        file = chosen.foreign / f"{name}.tsv"
        labels = [int(label) for label in column(file, "label")][:FOREIGN]
        found[name] = 100 * float(roc_auc_score(labels, cosines(encoder, file, FOREIGN)))
    return found


def cosines(encoder: isotrope.Encoder, file: Path, count: int) -> np.ndarray:
    first, second = (
        encoder.encode(list(column(file, side))[:count], normalize_embeddings=True)
        for side in ("sentence1", "sentence2")
    )
    return (first * second).sum(axis=1)


def mrr(encoder: isotrope.Encoder, pairs: list[Pair]) -> float:
    queries, texts = (encoder.encode(list(side), normalize_embeddings=True) for side in zip(*pairs, strict=True))
    scores = queries @ texts.T
    ranks = 1 + (scores > scores.diagonal()[:, None]).sum(axis=1)
    return float(100 * (1 / ranks).mean())


def show(name: str, seed: str, share: float, found: dict[str, float]) -> None:
    print(f"{name:12}{seed:>5}{share:>7g}" + "".join(f"{found[one]:9.2f}" for one in COLUMNS), flush=True)


if __name__ == "__main__":
    main()
