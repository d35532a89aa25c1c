"""What post-processing gains on STS and costs on transfer: whitening, flow and removed components, judged by both.

SimCSE's claim (Gao et al. 2021): whitening and flow lift STS and lower transfer. A linear map that can be inverted
changes nothing that a classifier without a penalty could use, so what transfer loses, it loses to dropped dimensions
and to the penalty. Features are therefore judged standardised, as the suite does, and as they are.

``general``: the map is fitted to --text. ``target``: to the sentences that are judged, without labels, as the papers
do.

python benchmarks/spaces_transfer.py --data-dir DATA --text TEXT [--lines 20000] [--model builtin-base] [--pooling mean]
[--seed 0] [--space none --space flow] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import isotrope
from isotrope.data.sentence_files import sentences_of
from isotrope.encoders.encoder import Encoder
from isotrope.evaluation.linear import read_labelled
from isotrope.evaluation.sts import evaluate_sts, read_benchmark
from isotrope.evaluation.transfer import evaluate_transfer
from isotrope.evaluation.transfer_tasks import PAIRS, TASKS, task_files

SPACES: dict[str, tuple[str, dict[str, Any]]] = {
    "remove-components": ("remove-components", {}),
    "whitening": ("whitening", {}),
    "whitening k=256": ("whitening", {"k": 256}),
    "flow": ("flow", {}),
}
NONE = "none"
COLUMNS = ("STS", "STS-B", "transfer", "transfer, raw features", *TASKS)


def transfer_texts(folder: Path) -> list[str]:
    """Every text of the seven tasks, once."""
    texts: dict[str, None] = {}
    for task, files in task_files(folder).items():
        for file in files:
            part = read_labelled(file, record_type="labelled-pairs" if task in PAIRS else "labelled")
            texts.update(dict.fromkeys(text for side in part.texts for text in side if text))
    return list(texts)


def judged(for_sts: Encoder, for_transfer: Encoder, data_dir: Path, seeds: list[int]) -> dict[str, float]:
    sts = evaluate_sts(for_sts, data_dir, resamples=2, baselines=False).scores["sts"]
    transfer = evaluate_transfer(for_transfer, data_dir, seeds, tasks=tuple(TASKS)).scores["transfer"]
    found = evaluate_transfer(for_transfer, data_dir, seeds, standardise=False, tasks=tuple(TASKS))
    raw = found.scores["transfer"]
    averages = {
        "STS": sts["average"]["spearman"],
        "STS-B": sts["STS-B"]["spearman"],
        "transfer": transfer["average"]["accuracy"],
        "transfer, raw features": raw["average"]["accuracy"],
    }
    return {**averages, **{task: transfer[task]["accuracy"] for task in TASKS}}


def show(space: str, text: str, row: dict[str, float]) -> None:
    print(f"| {space} | {text} |", " | ".join(f"{row[column]:.2f}" for column in COLUMNS), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--text", type=Path, required=True, help="The general text that maps are fitted to.")
    parser.add_argument("--lines", type=int, default=20_000)
    parser.add_argument("--model", default="builtin-base")
    parser.add_argument("--pooling")
    parser.add_argument("--seed", type=int, action="append", help="Of the folds; repeated, the mean is shown.")
    parser.add_argument("--space", action="append", choices=[NONE, *SPACES], help="Only these; may be repeated.")
    parser.add_argument("--json", type=Path, help="Write the rows to this file as well, after each.")
    options = parser.parse_args()
    warnings.simplefilter("ignore")

    encoder = isotrope.load(options.model, pooling=options.pooling)
    general = sentences_of(options.text)[: options.lines]
    targets = [
        sorted(read_benchmark(options.data_dir / "sts").texts()),
        transfer_texts(options.data_dir / "transfer"),
    ]
    seeds = options.seed or [0]
    print(
        f"model {options.model}, pooling {encoder.pooling.name}, general {options.text.name} {len(general):,} lines, "
        f"target {len(targets[0]):,} sentences of STS and {len(targets[1]):,} of transfer, seeds {seeds}\n"
    )
    print("| space | text |", " | ".join(COLUMNS), "|")
    print("|" + "---|" * (len(COLUMNS) + 2))
    rows: dict[str, dict[str, float]] = {}
    for label in options.space or [NONE, *SPACES]:
        name, settings = SPACES.get(label, (NONE, {}))
        for text, fitted_to in (("–", []),) if label == NONE else (("general", [general]), ("target", targets)):
            maps = [isotrope.fit_space(name, encoder, texts, **settings) for texts in fitted_to] or [encoder]
            row = rows[f"{label}, {text}"] = judged(maps[0], maps[-1], options.data_dir, seeds)
            show(label, text, row)
            if options.json is not None:
                options.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
