"""Child-Tuning against plain fine-tuning, each arm with the learning rate that suits it.

    python benchmarks/child_tuning.py --data-dir DATA [--tasks mrpc,rte,stsb] [--seeds 10] [--epochs 3]
    [--keep RUNS.jsonl] [--arms plain,D]

F divides what is left of the gradient by p, but Adam divides it out again: its mean step is about √p of plain
training's. At one rate for all arms, F is plain training at a lower rate. So each arm (plain, F, D) first chooses its
rate from ``--rates``: a tenth of the training records is held out, and the mean of its own measure over ``--tries``
seeds decides. Then all training records are learned at that rate, and the test file is measured once for each of
``--seeds`` other seeds. Differences to plain are taken seed by seed, with an interval of 95 % (Student's t). ``--keep``
writes every run to a file, and a repeated call makes those that are missing.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from kept_runs import KeptRuns
from scipy.stats import t

import isotrope
from isotrope.data.readers import column
from isotrope.training.state import TrainingWarning

TASKS = {  # training file, test file, the measure
    "mrpc": ("transfer/mrpc.train.tsv.gz", "transfer/mrpc.test.tsv.gz", "accuracy"),
    "rte": ("nli/rte.train.tsv.gz", "nli/rte.dev.tsv.gz", "accuracy"),
    "stsb": ("sts/stsb.train.tsv.gz", "sts/stsb.dev.tsv.gz", "spearman"),
}
FIRST_COLUMN = {"mrpc": "label", "rte": "label", "stsb": "score"}
HELD_OUT = 100_000  # the loop holds out a tenth at most


def fine_tuned(train: Path, own: dict[str, Any], loop: dict[str, Any], model: str, output: Path) -> dict[str, float]:
    """The measures of the last weights; the run's files go, there are hundreds of runs."""
    run = isotrope.train("fine-tune", train, model, output, final_table=False, **loop, **own)
    shutil.rmtree(output)
    return [line["evaluation"] for line in run.history if "evaluation" in line][-1]


Scored = Callable[[dict[str, Any], Path], float]  # settings of a run, its folder → the measure


def best_rate(
    scored: Scored, loop: dict[str, Any], folder: Path, chosen: argparse.Namespace
) -> tuple[float, dict[float, float]]:
    """The rate with the highest mean over a few seeds, and the mean of each."""
    means = {}
    for rate in chosen.rates:
        found = []
        for seed in range(1000, 1000 + chosen.tries):
            settings = {**loop, "learning_rate": rate, "seed": seed, "held_out": HELD_OUT}
            found.append(scored(settings, folder / f"{rate}-{seed}"))
        means[rate] = float(np.mean(found))
    return max(means, key=lambda rate: means[rate]), means


def interval(values: np.ndarray, sign: str = "") -> str:
    if len(values) < 2:
        return f"{values.mean():{sign}.4f}"
    reach = t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():{sign}.4f} ({values.mean() - reach:{sign}.4f} … {values.mean() + reach:{sign}.4f})"


def compared(task: str, folder: Path, chosen: argparse.Namespace) -> None:
    """Print the rows of one task."""
    train, test = (chosen.data_dir / name for name in TASKS[task][:2])
    measure = TASKS[task][2]
    steps = chosen.steps or len(list(column(train, FIRST_COLUMN[task]))) * chosen.epochs // chosen.batch_size
    loop = {
        "max_steps": steps,
        "eval_steps": steps,
        "batch_size": chosen.batch_size,
        "warmup_ratio": 0.1,
        "max_length": chosen.length,
    }
    arms = {
        "plain": {},
        "F": {"child_tuning": "F", "child_p": chosen.share},
        "D": {"child_tuning": "D", "child_p": chosen.share, "child_samples": chosen.samples},
    }
    kept = KeptRuns(chosen.keep)
    results: dict[str, np.ndarray] = {}
    for arm, own in arms.items():
        if arm not in chosen.arms.split(","):
            continue

        def scored(settings: dict[str, Any], output: Path, own: dict[str, Any] = own) -> float:
            name = f"test_{measure}" if "test" in settings else measure
            run = {"task": task, "model": chosen.model, **own, **settings, "test": "test" in settings}
            return float(kept.get(run, lambda: fine_tuned(train, own, settings, chosen.model, output)[name]))

        rate, means = best_rate(scored, loop, folder / f"{task}-{arm}-rates", chosen)
        found = []
        for seed in range(chosen.seeds):
            settings = {**loop, "learning_rate": rate, "seed": seed, "held_out": 0, "test": str(test)}
            output = folder / f"{task}-{arm}-{seed}"
            found.append(scored(settings, output))
        results[arm] = np.array(found)
        listed = ", ".join(f"{tried:g}: {mean:.4f}" for tried, mean in means.items())
        compares = arm != "plain" and "plain" in results
        difference = interval(results[arm] - results["plain"], "+") if compares else ""
        print(
            f"| {task}, {measure} | {arm} | {rate:g} | {listed} | {interval(results[arm])} | {difference} |", flush=True
        )


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data-dir", type=Path, required=True)
    options.add_argument("--tasks", default=",".join(TASKS))
    options.add_argument("--model", default="builtin-base")
    options.add_argument("--rates", type=float, nargs="+", default=[5e-5, 1e-4, 2e-4, 4e-4])
    options.add_argument("--tries", type=int, default=3, help="seeds that a rate is chosen by")
    options.add_argument("--seeds", type=int, default=10)
    options.add_argument("--epochs", type=int, default=3)
    options.add_argument("--steps", type=int, help="updates; wins over epochs")
    options.add_argument("--batch-size", type=int, default=32)
    options.add_argument("--length", type=int, default=128)
    options.add_argument("--share", type=float, default=0.3)
    options.add_argument("--samples", type=int, default=512)
    options.add_argument("--arms", default="plain,F,D", help="these alone, joined by commas")
    options.add_argument("--keep", type=Path, help="a file of runs: those it has are not made again")
    chosen = options.parse_args()
    warnings.simplefilter("ignore", TrainingWarning)
    print("| task | arm | rate | held-out mean of each rate | test, mean (95 % interval) | from plain, seed by seed |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for task in chosen.tasks.split(","):
            compared(task, Path(folder), chosen)


if __name__ == "__main__":
    main()
