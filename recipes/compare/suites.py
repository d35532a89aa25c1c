"""Every suite for several models: one table, and for each pair of models a sentence for each suite.

    python recipes/compare/suites.py DATA OUTPUT NAME=MODEL… [--suite all] [--parallel 4]

MODEL: `builtin`, `builtin-base`, a model folder, or several runs of one method joined by commas, whose random seeds
then count. What is known of a run is OUTPUT/NAME-NUMBER.pkl; the same call continues with those that are missing. The
table has the mean of the main measure over the tasks of a suite, for suites that have items; OUTPUT/NAME-NUMBER.txt has
every number with its protocol, and OUTPUT/sentences.md the verdicts.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from isotrope.evaluation.judged_models import find_models
from isotrope.evaluation.suite import Options
from isotrope.evaluation.suite_runs import joined_results, plan_suites, run_suites
from isotrope.evaluation.verdict import Verdict, decide
from isotrope.progress import hidden

Judged = list[dict[str, Any]]  # runs → suite → results


def judge(model: str, data: Path, suite: str, file: Path) -> str:
    """One run; its results go to ``file``, its tables beside it."""
    if not file.is_file():
        planned, left_out = plan_suites(suite, Options(data))
        (found,) = find_models([model])
        with hidden():
            results = run_suites(found.opened(0), planned, left_out)
        file.with_suffix(".txt").write_text(joined_results(results, left_out).table(), encoding="utf-8")
        file.write_bytes(pickle.dumps(results))
    return file.stem


def table(judged: dict[str, Judged]) -> str:
    """The mean over the tasks of each suite that has items, in points: what the sentences are about."""
    suites = _common(judged)
    lines = ["| model | " + " | ".join(suites) + " |", "|---" * (len(suites) + 1) + "|"]
    for name, runs in judged.items():
        means = [_mean([_mean([one.score() for one in run[suite].items.values()]) for run in runs]) for suite in suites]
        lines.append(f"| {name} | " + " | ".join(f"{mean:.1f}" for mean in means) + " |")
    return "\n".join(lines)


def verdicts(judged: dict[str, Judged]) -> list[Verdict]:
    found = []
    for (one, runs), (other, other_runs) in itertools.combinations(judged.items(), 2):
        for suite in _common(judged):
            sides = [[run[suite].items for run in side] for side in (runs, other_runs)]
            found.append(decide(suite, (one, other), *sides))
    return found


def _common(judged: dict[str, Judged]) -> list[str]:
    """The suites with items that every run has: an exported model has no layers, for one."""
    every = [run for runs in judged.values() for run in runs]
    return [suite for suite, results in every[0].items() if results.items and all(suite in run for run in every)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path)
    options.add_argument("output", type=Path)
    options.add_argument("models", nargs="+", metavar="NAME=MODEL")
    options.add_argument("--suite", default="all")
    options.add_argument("--parallel", type=int, default=1)
    given = options.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    named = {
        name: [(model, given.output / f"{name}-{number}.pkl") for number, model in enumerate(models.split(","))]
        for name, models in (one.split("=", 1) for one in given.models)
    }
    with ProcessPoolExecutor(given.parallel, multiprocessing.get_context("spawn")) as pool:
        jobs = [
            pool.submit(judge, model, given.data, given.suite, file) for runs in named.values() for model, file in runs
        ]
        for job in jobs:
            print(job.result(), flush=True)
    judged = {name: [dict(pickle.loads(file.read_bytes())) for _, file in runs] for name, runs in named.items()}
    print(table(judged))
    lines = [f"- {verdict.sentence}" for verdict in verdicts(judged)]
    (given.output / "sentences.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
