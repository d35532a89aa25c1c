"""Is a checkpoint chosen without labels about as good as one chosen by STS-B dev? Each run is chosen from both ways.

    python benchmarks/label_free.py TEXT --data-dir DATA [--methods …] [--seeds 3] [--steps 200] [--every 25] [--SETTING
    VALUE …]

Neither choice sees what it is judged by: the mean Spearman of STS12 train and SICK train, without the pairs that stand
in STS-B dev too (268 rows). Columns: before training, the
last checkpoint, the one chosen by ``retrieval_mrr``, the one chosen by STS-B dev, the best there was; then the mean
rank correlation of ``retrieval_mrr`` with the judge over the checkpoints of a run. Means over seeds. More settings go
to every run, such as --batch-size 64.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import numpy as np

import isotrope
from isotrope.measures.correlation import spearman

CHOOSER, JUDGES = "stsb.dev", ("sts12.train", "sick.train")


def figures(history: list[dict]) -> list[float]:
    """The columns of one run."""
    lines = [line["evaluation"] for line in history if "evaluation" in line]
    free = [line["retrieval_mrr"] for line in lines]
    by = {
        name: [next(v for k, v in line.items() if k.startswith("spearman ") and name in k) for line in lines]
        for name in (CHOOSER, *JUDGES)
    }
    judged = np.mean([by[name] for name in JUDGES], axis=0)
    chosen = [judged[int(np.argmax(scores))] for scores in (free, by[CHOOSER], judged)]
    return [judged[0], judged[-1], *chosen, spearman(np.array(free), judged)]


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("text", type=Path)
    options.add_argument("--data-dir", type=Path, required=True)
    options.add_argument("--model", default="builtin-base")
    options.add_argument("--methods", default="simcse,simclr,quick-thoughts,tsdae")
    options.add_argument("--seeds", type=int, default=3)
    options.add_argument("--steps", type=int, default=200)
    options.add_argument("--every", type=int, default=25)
    chosen, rest = options.parse_known_args()
    settings = dict(zip((name.lstrip("-") for name in rest[::2]), rest[1::2], strict=True))
    warnings.simplefilter("ignore")
    chooser, *judges = (chosen.data_dir / "sts" / f"{name}.tsv.gz" for name in (CHOOSER, *JUDGES))
    print("| method | before | last | chosen without labels | chosen by STS-B dev | best | rank correlation |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        isotrope.leaks(judges, [chooser], output=Path(folder) / "judges", match="pair")
        files = [chooser, *(Path(folder) / "judges" / judge.name for judge in judges)]
        for method in chosen.methods.split(","):
            rows = []
            for seed in range(chosen.seeds):
                output = Path(folder) / f"{method}-{seed}"
                loop = {
                    "max_steps": chosen.steps,
                    "eval_steps": chosen.every,
                    "eval_data": files,
                    "seed": seed,
                    "final_table": False,
                }
                rows.append(
                    figures(isotrope.train(method, chosen.text, chosen.model, output, **loop, **settings).history)
                )
            *scores, correlation = np.mean(rows, axis=0)
            print(
                f"| `{method}` | " + " | ".join(f"{score:.2f}" for score in scores) + f" | {correlation:+.2f} |",
                flush=True,
            )
    print(f"\n{chosen.seeds} seeds, {chosen.steps} steps, a checkpoint each {chosen.every}; {settings or ''}")


if __name__ == "__main__":
    main()
