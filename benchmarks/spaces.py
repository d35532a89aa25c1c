"""STS before and after a space: Spearman × 100 of the seven tasks and their average, aggregated as all and as wmean.

Every sentence is encoded once; maps are fitted to the kept vectors, and give what isotrope.fit_space and
isotrope.evaluate give (--check). ``target``: one map a task, fitted to all its sentences, as the papers do.
``general``: one map, fitted to another text.

python benchmarks/spaces.py --data-dir DATA --general TEXT [--lines 20000] [--model builtin-base] [--pooling mean]
[--check]
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

import isotrope
from isotrope.data.sentence_files import sentences_of
from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.benchmark_files import find_task, optional_task
from isotrope.evaluation.scored_pairs import ScoredPairs, read_pairs
from isotrope.evaluation.sts import TASKS
from isotrope.evaluation.sts_scores import YEARS, correlate
from isotrope.methods.frame.settings import resolve
from isotrope.spaces.space_registry import find

SPACES: dict[str, tuple[str, dict[str, Any]]] = {
    "standardise": ("standardise", {}),
    "remove-components": ("remove-components", {}),
    "whitening": ("whitening", {}),
    "whitening k=256": ("whitening", {"k": 256}),
    "flow": ("flow", {}),
    "flow lr=2e-5, 0.15 epochs": ("flow", {"learning_rate": 2e-5, "epochs": 0.15}),
    "flow levels=3, reversal": ("flow", {"levels": 3, "permutation": "reversal"}),
    "flow affine, linear": ("flow", {"coupling": "affine", "permutation": "linear"}),
}
POOLED = ("sif", "sbert-wk")


class Vectors:
    """Of every sentence, once."""

    def __init__(self, encoder: Encoder, texts: set[str]) -> None:
        self.order = sorted(texts)
        self.rows = {text: row for row, text in enumerate(self.order)}
        self.values = encoder.encode(self.order)

    def of(self, texts: list[str]) -> Any:
        return self.values[[self.rows[text] for text in texts]]


def target_texts(folder: Path) -> dict[str, list[str]]:
    """By task, the sentences of all its parts, without their scores."""
    found: dict[str, list[str]] = {}
    for task, name in TASKS.items():
        stem = name.split(".")[0]
        parts = [optional_task(folder, f"{stem}.{part}") for part in ("train", "trial", "dev", "test")]
        found[task] = [text for file in parts if file for text in read_pairs(file).texts]
    return found


def fitted(name: str, settings: dict[str, Any], vectors: Any) -> torch.nn.Module:
    space = find(name)
    (chosen,) = resolve(settings, space.Settings)
    return space(chosen).fitted(vectors.astype(np.float64))


def scores(
    tasks: dict[str, ScoredPairs], vectors: Vectors, maps: dict[str, torch.nn.Module | None]
) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {"all": {}, "wmean": {}}
    for task, (first, second, gold, subsets) in tasks.items():
        sides = [torch.from_numpy(vectors.of(side)) for side in (first, second)]
        change = maps[task]
        with torch.inference_mode():
            units = [
                torch.nn.functional.normalize(change(side) if change else side, dim=-1).numpy().astype(np.float64)
                for side in sides
            ]
        cosine = (units[0] * units[1]).sum(axis=1)
        for aggregation, row in found.items():
            names = subsets if task in YEARS else [""] * len(gold)
            row[task] = 100 * correlate("spearman", cosine, gold, names, aggregation)
    for row in found.values():
        row["average"] = float(np.mean([row[task] for task in tasks]))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--general", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--model", default="builtin-base")
    parser.add_argument("--pooling")
    parser.add_argument("--check", action="store_true", help="Judge one fitted model by isotrope.evaluate as well.")
    parser.add_argument("--quick", action="store_true", help="Whitening and flow alone.")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    folder = options.data_dir / "sts"
    tasks = {task: read_pairs(find_task(folder, name)) for task, name in TASKS.items()}
    general = sentences_of(options.general)[: options.lines]
    target = target_texts(folder)
    print(
        f"model {options.model}, {len(general):,} general lines; target sentences",
        {task: len(texts) for task, texts in target.items()},
    )

    encoder = isotrope.load(options.model, pooling=options.pooling)
    everything = {text for texts in [general, *target.values()] for text in texts}
    vectors = Vectors(encoder, everything)
    rows = {("none", "–"): scores(tasks, vectors, dict.fromkeys(tasks))}
    show("none", "–", rows["none", "–"], head=True)
    for label, (name, settings) in SPACES.items():
        if options.quick and not (label.startswith("whitening") or label == "flow"):
            continue
        one = fitted(name, settings, vectors.of(general))
        rows[label, "general"] = scores(tasks, vectors, dict.fromkeys(tasks, one))
        show(label, "general", rows[label, "general"])
        own = {task: fitted(name, settings, vectors.of(texts)) for task, texts in target.items()}
        rows[label, "target"] = scores(tasks, vectors, own)
        show(label, "target", rows[label, "target"])
    for name in () if options.quick else POOLED:
        pooled = Vectors(
            isotrope.fit_space(name, encoder, general),
            {text for pairs in tasks.values() for text in pairs.texts},
        )
        rows[name, "general"] = scores(tasks, pooled, dict.fromkeys(tasks))
        show(name, "general", rows[name, "general"])
    if options.check:
        mapped = isotrope.fit_space("whitening", encoder, general, k=256)
        judged = isotrope.evaluate(mapped, data_dir=options.data_dir).scores["sts"]["average"]["spearman"]
        print(f"whitening k=256, general, all, by isotrope.evaluate: {judged:.2f}")


def show(space: str, text: str, found: dict[str, dict[str, float]], head: bool = False) -> None:
    if head:
        print("| space | text | aggregation |", " | ".join(TASKS), "| average |")
        print("|" + "---|" * (len(TASKS) + 4))
    for aggregation, row in found.items():
        print(
            f"| {space} | {text} | {aggregation} |",
            " | ".join(f"{row[task]:.2f}" for task in (*TASKS, "average")),
            "|",
            flush=True,
        )


if __name__ == "__main__":
    main()
