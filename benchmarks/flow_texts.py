"""BERT-flow fitted to NLI text and to the target text, next to whitening and no map: rows of the flow paper's table.

``NLI``: one map, fitted to the sentences of NLI files. ``target``: one map a task, fitted to the sentences of all its
parts, test sentences among them, without scores: this is transductive, as in the paper. The flow has a random seed, so
its rows are the mean of several and ± their standard deviation; whitening has none. The paper's rate for NLI (2e-5,
0.15 epochs) is that of a million lines; with fewer lines it hardly moves the flow, so its rate for target text is also
tried. Every sentence is encoded once.

python benchmarks/flow_texts.py --data-dir DATA --nli DATA/nli/triples.tsv.gz [--nli FILE …] [--lines 100000]
[--model builtin-base] [--pooling first_last] [--seeds 3] [--tasks STS-B,SICK-R]
"""

from __future__ import annotations

import argparse
import random
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import isotrope
from isotrope.data.readers import column
from isotrope.data.tables import header_of
from isotrope.evaluation.benchmark_files import find_task
from isotrope.evaluation.scored_pairs import ScoredPairs, read_pairs
from isotrope.evaluation.sts import TASKS
from spaces import Vectors, fitted, scores, target_texts

TEXT_COLUMNS = ("premise", "hypothesis", "entailment", "contradiction", "anchor", "positive", "negative")
TEXT_COLUMNS += ("sent0", "sent1", "hard_neg", "sentence1", "sentence2")
GENTLE = {"learning_rate": 2e-5, "epochs": 0.15}  # the paper's for NLI
Found = dict[str, dict[str, float]]  # aggregation → task → score


def nli_sentences(files: list[Path], lines: int) -> list[str]:
    """Different sentences of all text columns, in an order that no file decides; the paper says: shuffle."""
    found: dict[str, None] = {}
    for file in files:
        for name in header_of(file) or ():
            if name.strip().lower() in TEXT_COLUMNS:
                found.update(dict.fromkeys(text for text in column(file, name) if text))
    order = list(found)
    random.Random(0).shuffle(order)
    return order[:lines]


def chosen_tasks(data_dir: Path, names: str) -> dict[str, ScoredPairs]:
    """The test sets of ``names``, joined by commas; of all seven where it is empty."""
    wanted = names.split(",") if names else list(TASKS)
    return {task: read_pairs(find_task(data_dir / "sts", TASKS[task])) for task in wanted}


def head(first: str, tasks: dict[str, ScoredPairs]) -> None:
    print(f"| {first} | text | aggregation |", " | ".join(tasks), "| average |")
    print("|" + "---|" * (len(tasks) + 4))


def show(space: str, text: str, runs: list[Found]) -> None:
    """A line for each aggregation: the mean of the runs, and ± their standard deviation where there are several."""
    for aggregation in runs[0]:
        cells = []
        for task in runs[0][aggregation]:
            values = [run[aggregation][task] for run in runs]
            cells.append(f"{np.mean(values):.2f}" + (f" ± {np.std(values, ddof=1):.2f}" if len(values) > 1 else ""))
        print(f"| {space} | {text} | {aggregation} |", " | ".join(cells), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--nli", type=Path, action="append", required=True)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--model", default="builtin-base")
    parser.add_argument("--pooling", default="first_last")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks", default="", help="Names joined by commas; default: all seven.")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    tasks = chosen_tasks(options.data_dir, options.tasks)
    nli, everything = nli_sentences(options.nli, options.lines), target_texts(options.data_dir / "sts")
    target = {task: everything[task] for task in tasks}
    encoder = isotrope.load(options.model, pooling=options.pooling)
    print(f"model {options.model}, pooling {options.pooling}, {len(nli):,} NLI sentences, {options.seeds} seeds")
    vectors = Vectors(encoder, {text for texts in [nli, *target.values()] for text in texts})

    def with_nli(name: str, settings: dict[str, Any]) -> Found:
        return scores(tasks, vectors, dict.fromkeys(tasks, fitted(name, settings, vectors.of(nli))))

    def with_target(name: str, settings: dict[str, Any]) -> Found:
        maps = {task: fitted(name, settings, vectors.of(texts)) for task, texts in target.items()}
        return scores(tasks, vectors, maps)

    head("space", tasks)
    show("none", "–", [scores(tasks, vectors, dict.fromkeys(tasks))])
    show("whitening", "NLI", [with_nli("whitening", {})])
    show("whitening", "target", [with_target("whitening", {})])
    seeds = [{"seed": seed} for seed in range(options.seeds)]
    show("flow, rate 2e-5, 0.15 epochs", "NLI", [with_nli("flow", {**GENTLE, **seed}) for seed in seeds])
    show("flow, rate 1e-3, 1 epoch", "NLI", [with_nli("flow", seed) for seed in seeds])
    show("flow, rate 1e-3, 1 epoch", "target", [with_target("flow", seed) for seed in seeds])


if __name__ == "__main__":
    main()
