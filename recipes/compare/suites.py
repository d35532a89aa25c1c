"""Every suite for several models: one table, and for each pair of models a sentence for each suite.

    python recipes/compare/suites.py DATA OUTPUT NAME=MODEL… [--suite all] [--parallel 4] [--stored]

MODEL: `builtin`, `builtin-base`, a model folder, or several runs of one method joined by commas, whose random seeds
then count. What is known of a run is OUTPUT/NAME-NUMBER/SUITE.pkl, with every number and its protocol in SUITE.txt; the
same call continues with those that are missing, and several calls may share the suites and models out. `--stored`
judges nothing: models may be gone. The table has the mean of the main measure over the tasks of a suite, for suites
that have items, baselines below; OUTPUT/sentences.md has the verdicts, suite by suite, OUTPUT/pairs.md all of them in
one table.
"""

from __future__ import annotations

import argparse
import itertools
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from isotrope.errors import InputError
from isotrope.evaluation.judged_models import find_models
from isotrope.evaluation.results import Results
from isotrope.evaluation.suite import Options, registry
from isotrope.evaluation.suite_runs import plan_suites, run_suites
from isotrope.evaluation.vector_cache import shared_vectors
from isotrope.evaluation.verdict import NO_DIFFERENCE, Verdict, decide
from isotrope.progress import hidden

TASK_MEASURES = {"retrieval": "ndcg_10", "clustering": "accuracy", "bitext": "accuracy"}  # of baselines, task by task
OF_THE_MODEL = "encoder"  # how the name of a baseline begins that the model has a part in
Judged = list[dict[str, Results]]  # runs → suite → results


def judge(model: str, data: Path, suite: str, folder: Path) -> str:
    """One run; the results of each suite go to ``folder`` as soon as they are there."""
    planned, left_out = plan_suites(suite, Options(data))
    missing = [one for one in planned if not (folder / f"{one.name}.pkl").is_file()]
    folder.mkdir(parents=True, exist_ok=True)
    if missing:
        (found,) = find_models([model])
        encoder = found.opened(0)
        with hidden(), shared_vectors(True):
            for one in missing:
                try:
                    ((name, results),) = run_suites(encoder, [one])
                except InputError as error:
                    if one.named:
                        raise
                    left_out[one.name] = str(error)
                    continue
                (folder / f"{name}.txt").write_text(results.table(), encoding="utf-8")
                part = folder / f"{name}.part"
                part.write_bytes(pickle.dumps(results))
                part.replace(folder / f"{name}.pkl")
    return "\n".join([folder.name, *(f"{name} is left out: {reason}" for name, reason in left_out.items())])


def stored(folder: Path) -> dict[str, Results]:
    files = {file.stem: file for file in folder.glob("*.pkl")}
    return {name: pickle.loads(files[name].read_bytes()) for name in sorted(files, key=_place)}


def table(judged: dict[str, Judged]) -> str:
    """The mean over the tasks of each suite that has items, in points: what the sentences are about."""
    every = [run for runs in judged.values() for run in runs]
    suites = sorted({suite for run in every for suite, results in run.items() if results.items}, key=_place)
    lines = ["| model | " + " | ".join(suites) + " |", "|---" * (len(suites) + 1) + "|"]
    for name, runs in judged.items():
        cells = []
        for suite in suites:
            whole = all(suite in run and run[suite].items for run in runs)
            means = [_mean([one.score() for one in run[suite].items.values()]) for run in runs] if whole else []
            cells.append(f"{_mean(means):.1f}" if means else "–")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    found = {suite: baselines(suite, next(run[suite] for run in every if suite in run)) for suite in suites}
    for name in dict.fromkeys(name for of in found.values() for name in of):
        cells = [f"{of[name]:.1f}" if name in of else "" for of in found.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def baselines(suite: str, results: Results) -> dict[str, float]:
    """The mean over the tasks of a suite, by the name of the baseline; the same for every model."""
    scores = results.scores[suite]
    if suite == "sts":
        return {name: row["average"] for name, row in scores["baselines"].items()}
    if suite == "answers":
        return {name: row["map"]["value"] for name, row in scores["baselines"].items()}
    values: dict[str, list[float]] = {}
    for task in results.items if suite in TASK_MEASURES else ():
        for name, row in scores[task].get("baselines", {}).items():
            values.setdefault(name, []).append(row[TASK_MEASURES[suite]])
    return {name: _mean(of) for name, of in values.items() if not name.startswith(OF_THE_MODEL)}


def verdicts(judged: dict[str, Judged]) -> list[Verdict]:
    found = []
    for (one, runs), (other, other_runs) in itertools.combinations(judged.items(), 2):
        for suite in _common([*runs, *other_runs]):
            sides = [[run[suite].items for run in side] for side in (runs, other_runs)]
            found.append(decide(suite, (one, other), *sides))
    return sorted(found, key=lambda verdict: _place(verdict.suite))


def pair_table(found: list[Verdict]) -> str:
    """A row for each pair: how far the first is above the second, 95 % interval, tasks it is better and worse on."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    tasks: dict[str, int] = {}
    for one in found:
        average, words = one.average, [task.verdict for task in one.tasks]
        shown = f"{average.difference:+.1f}" if average.verdict == NO_DIFFERENCE else f"**{average.difference:+.1f}**"
        counts = f"; {words.count('better')}, {words.count('worse')}" if len(words) > 1 else ""
        cell = f"{shown} ({average.low:.1f} to {average.high:.1f}{counts})"
        cells.setdefault((one.model, one.against), {})[one.suite] = cell
        tasks[one.suite] = len(words)
    head = " | ".join(f"{suite}, {count}" for suite, count in tasks.items())
    lines = [f"| pair | {head} |", "|---" * (len(tasks) + 1) + "|"]
    for (model, against), row in cells.items():
        lines.append(f"| {model} − {against} | " + " | ".join(row.get(suite, "–") for suite in tasks) + " |")
    return "\n".join(lines)


def _place(suite: str) -> tuple[int, str]:
    """The order of the register; tasks of the mteb package behind."""
    order = list(registry())
    return order.index(suite) if suite in order else len(order), suite


def _common(runs: Judged) -> list[str]:
    """The suites with items that every run has: an exported model has no layers, for one."""
    return [suite for suite in runs[0] if all(suite in run and run[suite].items for run in runs)]


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("data", type=Path)
    options.add_argument("output", type=Path)
    options.add_argument("models", nargs="+", metavar="NAME=MODEL")
    options.add_argument("--suite", default="all")
    options.add_argument("--parallel", type=int, default=1)
    options.add_argument("--stored", action="store_true", help="tables of what OUTPUT has; nothing is judged")
    given = options.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    named = {
        name: [(model, given.output / f"{name}-{number}") for number, model in enumerate(models.split(","))]
        for name, models in (one.split("=", 1) for one in given.models)
    }
    if not given.stored:
        with ProcessPoolExecutor(given.parallel, multiprocessing.get_context("spawn")) as pool:
            every = [run for runs in named.values() for run in runs]
            for job in [pool.submit(judge, model, given.data, given.suite, folder) for model, folder in every]:
                print(job.result(), flush=True)
    judged = {name: [stored(folder) for _, folder in runs] for name, runs in named.items()}
    print(table(judged))
    if len(judged) > 1:
        lines, found = [], verdicts(judged)
        (given.output / "pairs.md").write_text(pair_table(found) + "\n", encoding="utf-8")
        for suite, of in itertools.groupby(found, key=lambda verdict: verdict.suite):
            lines += ["", f"## {suite}", "", *(f"- {verdict.sentence}" for verdict in of)]
        (given.output / "sentences.md").write_text("\n".join(lines[1:]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
