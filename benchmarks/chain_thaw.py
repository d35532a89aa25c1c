"""Chain-thaw against full fine-tuning on the emotion sets: the same texts, start, seeds and number of updates.

    python benchmarks/chain_thaw.py --data-dir DATA [--models builtin-base,runs/deepmoji/model] [--sets psychexp,scv1]
    [--seeds 5] [--keep RUNS.jsonl] [--arms none|even]

Each row is a set: accuracy and F1 on its test part, mean over seeds, then the mean of the differences chain-thaw − full
with an interval of 95 % (Student's t over the seeds, paired). Training and validation parts are trained on together,
nothing is chosen by them, and the last weights are judged. With ``--stage-patience`` stages end as in the paper: a
tenth of these texts is held out in both arms, evaluated every ``--eval-steps`` updates, and a stage ends when it is not
classified better any more; full fine-tuning has no stages, and is evaluated at its end. ``--keep`` writes every run to
a file, and a repeated call makes those that are missing; with ``--arms`` a process makes the runs of one arm and prints
no row. The sets whose texts carry several labels at once (olympic, se0714) are left out.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from kept_runs import KeptRuns
from scipy.stats import t

import isotrope
from isotrope.data.readers import column
from isotrope.training.state import TrainingWarning

SETS = ("psychexp", "scv1", "scv2gen", "ss_twitter", "ss_youtube", "tweeteval_emotion", "tweeteval_irony")
HELD_OUT = 100_000  # the loop holds out a tenth at most
MEASURES = ("test_accuracy", "test_f1")
TERMS = ("steps", "batch_size", "rate", "length", "stage_patience", "eval_steps")


def parts(folder: Path, name: str, target: Path) -> tuple[Path, Path]:
    """Training and test part of a set, as two files of labelled text."""
    whole = folder / f"{name}.tsv.gz"
    if whole.is_file():
        rows = list(zip(*(column(whole, part) for part in ("split", "label", "sentence")), strict=True))
    else:
        files = {split: folder / f"{name}.{split}.tsv.gz" for split in ("train", "dev", "test")}
        rows = [
            (split, *row)
            for split, file in files.items()
            for row in zip(column(file, "label"), column(file, "sentence"), strict=True)
        ]
    written = []
    for part in ("train", "test"):
        chosen = [f"{label}\t{text}" for split, label, text in rows if (split == "test") == (part == "test") and text]
        written.append(target / f"{name}.{part}.tsv")
        written[-1].write_text("\n".join(["label\tsentence", *chosen]) + "\n", encoding="utf-8")
    return written[0], written[1]


def measured(
    train: Path, test: Path, model: str, thaw: str, seed: int, output: Path, chosen: argparse.Namespace
) -> list[float]:
    """The measures of the last weights on the test part."""
    loop = {
        "max_steps": chosen.steps,
        "eval_steps": chosen.eval_steps if chosen.stage_patience and thaw != "none" else chosen.steps,
        "batch_size": chosen.batch_size,
        "learning_rate": chosen.rate,
    }
    run = isotrope.train(
        "fine-tune",
        train,
        model,
        output,
        test=str(test),
        chain_thaw=thaw,
        stage_patience=chosen.stage_patience,
        seed=seed,
        held_out=HELD_OUT if chosen.stage_patience else 0,
        max_length=chosen.length,
        final_table=False,
        **loop,
    )
    shutil.rmtree(output)
    last = [line["evaluation"] for line in run.history if "evaluation" in line][-1]
    return [100 * last[name] for name in MEASURES]


def interval(differences: np.ndarray) -> str:
    if len(differences) < 2:
        return f"{differences.mean():+.2f}"
    reach = t.ppf(0.975, len(differences) - 1) * differences.std(ddof=1) / np.sqrt(len(differences))
    return f"{differences.mean():+.2f} ± {reach:.2f}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data-dir", type=Path, required=True)
    options.add_argument("--models", default="builtin-base")
    options.add_argument("--sets", default=",".join(SETS))
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--first-seed", type=int, default=0)
    options.add_argument("--steps", type=int, default=300)
    options.add_argument("--batch-size", type=int, default=32)
    options.add_argument("--rate", type=float, default=1e-4)
    options.add_argument("--length", type=int, default=64)
    options.add_argument("--chain-thaw", default="even")
    options.add_argument("--stage-patience", type=int, help="evaluations without a gain that end a stage")
    options.add_argument("--eval-steps", type=int, default=10, help="updates between two of them")
    options.add_argument("--keep", type=Path, help="a file of runs: those it has are not made again")
    options.add_argument("--arms", help="make the runs of these alone, joined by commas, and print no row")
    chosen = options.parse_args()
    warnings.simplefilter("ignore", TrainingWarning)
    kept = KeptRuns(chosen.keep)
    terms = {name: getattr(chosen, name) for name in TERMS}
    print("| model | set | accuracy, full | chain-thaw | difference | F1, full | chain-thaw | difference |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        for place, model in enumerate(chosen.models.split(",")):
            for name in chosen.sets.split(","):
                files = parts(chosen.data_dir / "emotion", name, target)
                arms = chosen.arms.split(",") if chosen.arms else ["none", chosen.chain_thaw]
                found: dict[str, list[list[float]]] = {arm: [] for arm in arms}  # [seeds, measures] of each arm
                for seed in range(chosen.first_seed, chosen.first_seed + chosen.seeds):
                    for number, (thaw, rows) in enumerate(found.items()):
                        output = target / f"{place}-{name}-{number}-{seed}"
                        run = {"model": model, "set": name, "chain_thaw": thaw, "seed": seed, **terms}
                        make = partial(measured, *files, model, thaw, seed, output, chosen)
                        rows.append(kept.get(run, make))
                if chosen.arms:
                    continue
                full, thawed = (np.array(rows) for rows in found.values())
                cells = [
                    f"{full[:, k].mean():.2f} | {thawed[:, k].mean():.2f} | {interval(thawed[:, k] - full[:, k])}"
                    for k in range(len(MEASURES))
                ]
                print(f"| {model} | {name} | {' | '.join(cells)} |", flush=True)
    print(
        f"\n{chosen.seeds} seeds, {chosen.steps} updates of {chosen.batch_size}, rate {chosen.rate}, "
        f"stages {chosen.chain_thaw}, patience {chosen.stage_patience}"
    )


if __name__ == "__main__":
    main()
