"""Which figure without labels chooses the checkpoint that the tests would choose? A table over many runs.

    python recipes/development/proxies.py TEXT… --data-dir DATA --dev clean_dev.tsv --output FOLDER
        [--methods a,b,…] [--seeds 3] [--steps 300] [--every 30] [--parallel 4] [--SETTING VALUE …]

Each method is trained on each text with each seed. At each evaluation the proxies of
``isotrope.evaluation.checkpoint_proxies`` and today's ``retrieval_mrr`` are measured on held-out text, next to the mean
Spearman of the seven STS tests and of the development set (``clean_dev.py`` makes one without test pairs). A finished
run is FOLDER/TEXT-METHOD-SEED.json; the same call continues with those that are missing, and without any it only prints
the table. TEXT: sentences with blank lines between documents. A run that fails is named and tried again next time.

Columns: the mean rank correlation of a proxy with the tests over the checkpoints of a run; regret: how many points the
checkpoint it chooses lies below the best of the run, its mean and its worst. "last" takes the last checkpoint, "any"
draws one at random.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import traceback
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

DEFAULT = "simcse,simclr,moco,sg-opt,vascl,tsdae,quick-thoughts,declutr"
TESTS, DEV, LAST, ANY = "tests", "dev", "last", "any"


@dataclass(frozen=True)
class Task:
    text: Path
    method: str
    seed: int
    data_dir: Path
    dev: Path
    output: Path
    model: str
    settings: dict[str, Any]

    @property
    def name(self) -> str:
        return f"{self.text.name.split('.')[0]}-{self.method}-{self.seed}"

    @property
    def result(self) -> Path:
        return self.output / f"{self.name}.json"


def perform(task: Task) -> str:
    """Train one run and write its trail; returns why it failed, or nothing."""
    from isotrope.files import write_json
    from isotrope.progress import hidden
    from isotrope.training.plan import make_plan
    from isotrope.training.run import run_plan

    warnings.simplefilter("ignore")
    folder = task.output / "runs" / task.name
    shutil.rmtree(folder, ignore_errors=True)  # a run that was killed begins again
    try:
        with hidden():
            plan = make_plan(task.method, task.text, task.model, folder, seed=task.seed, **task.settings)
            run = run_plan(plan, lambda corpus, rows, _: make_judge(task, corpus, rows))
    except Exception as error:
        traceback.print_exc()
        return f"{task.name}: {error}"
    trail = [{"step": line["step"], **line["evaluation"]} for line in run.history if "evaluation" in line]
    write_json(task.result, {"text": task.text.name, "method": task.method, "seed": task.seed, "trail": trail})
    shutil.rmtree(folder, ignore_errors=True)
    return ""


def make_judge(task: Task, corpus: Any, rows: Any) -> Any:
    """Proxies, tests and the development set at every evaluation; the choice itself does not matter here."""
    from isotrope.evaluation.checkpoint_proxies import measure_proxies
    from isotrope.evaluation.label_free import label_free, natural_pairs
    from isotrope.evaluation.proxy_material import make_material
    from isotrope.evaluation.scored_pairs import read_pairs
    from isotrope.evaluation.sts import TASKS
    from isotrope.training.state import Judgement

    material, pairs = make_material([corpus.text(row) for row in rows]), natural_pairs(corpus, rows)
    tests = [read_pairs(task.data_dir / "sts" / f"{name}.tsv.gz") for name in TASKS.values()]
    dev = read_pairs(task.dev)
    before = None

    def judge(encoder: Any) -> Judgement:
        nonlocal before
        proxies = measure_proxies(encoder, material, before)
        before = proxies.cosines
        scores = sts_scores(encoder, [*tests, dev])
        found = {"retrieval_mrr": label_free(encoder, pairs)["retrieval_mrr"], **proxies.values}
        return Judgement({**found, DEV: scores[-1], TESTS: float(np.mean(scores[:-1]))}, DEV)

    return judge


def sts_scores(encoder: Any, sets: list[Any]) -> list[float]:
    """Spearman × 100 of each set of scored pairs, over all its pairs; each text is encoded once."""
    from isotrope.evaluation.text_vectors import TextVectors
    from isotrope.measures.correlation import spearman

    known = TextVectors.encoded(encoder, (text for pairs in sets for text in pairs.texts), normalize=True)
    cosines = [(known.of(pairs.first) * known.of(pairs.second)).sum(axis=1) for pairs in sets]
    return [100 * float(spearman(found, pairs.gold)) for found, pairs in zip(cosines, sets, strict=True)]


def choices(trail: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    """(rank correlation with the tests, regret in points) of each way to choose, over the checkpoints after step 0."""
    from isotrope.measures.correlation import spearman

    after = [line for line in trail if line["step"] > 0]
    tests = np.array([line[TESTS] for line in after])
    found = {}
    for name in [name for name in after[0] if name not in ("step", TESTS)]:
        values = np.array([line[name] for line in after])
        found[name] = float(spearman(values, tests)), float(tests.max() - tests[int(np.argmax(values))])
    found[LAST] = float(spearman(np.arange(len(tests)), tests)), float(tests.max() - tests[-1])
    found[ANY] = 0.0, float(tests.max() - tests.mean())
    return found


def table(runs: list[dict[str, Any]]) -> str:
    """Markdown, the smallest mean regret first."""
    each = [choices(run["trail"]) for run in runs]
    rows = []
    for name in each[0]:
        correlations, regrets = np.array([found[name] for found in each if name in found]).T
        rows.append((regrets.mean(), name, np.nanmean(correlations), np.median(regrets), regrets.max()))
    lines = ["| chosen by | rank correlation | mean regret | median | worst |", "|---|---|---|---|---|"]
    for mean, name, correlation, median, worst in sorted(rows):
        lines.append(f"| {name} | {correlation:+.2f} | {mean:.2f} | {median:.2f} | {worst:.2f} |")
    methods = sorted({run["method"] for run in runs})
    texts = sorted({run["text"] for run in runs})
    return "\n".join([*lines, "", f"{len(runs)} runs: {', '.join(methods)} on {', '.join(texts)}"])


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("texts", type=Path, nargs="*")
    options.add_argument("--data-dir", type=Path)
    options.add_argument("--dev", type=Path)
    options.add_argument("--output", type=Path, required=True)
    options.add_argument("--model", default="builtin-base")
    options.add_argument("--methods", default=DEFAULT)
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--steps", type=int, default=300)
    options.add_argument("--every", type=int, default=30)
    options.add_argument("--held-out", type=int, default=8000)
    options.add_argument("--parallel", type=int, default=1)
    given, rest = options.parse_known_args()
    more = dict(zip((name.lstrip("-").replace("-", "_") for name in rest[::2]), rest[1::2], strict=True))
    loop = {"max_steps": given.steps, "eval_steps": given.every, "held_out": given.held_out, **more}
    given.output.mkdir(parents=True, exist_ok=True)
    tasks = [
        Task(text, method, seed, given.data_dir, given.dev, given.output, given.model, loop)
        for text in given.texts
        for method in given.methods.split(",")
        for seed in range(given.seeds)
    ]
    missing = [task for task in tasks if not task.result.is_file()]
    with ProcessPoolExecutor(given.parallel, multiprocessing.get_context("spawn")) as pool:
        for number, ended in enumerate(as_completed([pool.submit(perform, task) for task in missing]), 1):
            print(f"{number} of {len(missing)} {ended.result()}", flush=True)
    runs = [json.loads(file.read_text(encoding="utf-8")) for file in sorted(given.output.glob("*.json"))]
    for text in sorted({run["text"] for run in runs}):
        print(f"\n{text}\n\n{table([run for run in runs if run['text'] == text])}")
    print(f"\nall\n\n{table(runs)}" if runs else "No run has ended.")


if __name__ == "__main__":
    main()
