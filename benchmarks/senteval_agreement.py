"""The protocols of the transfer suite next to each other: accuracy and seconds of each task, every text encoded once.

python benchmarks/senteval_agreement.py --data-dir data --tasks CR,TREC
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import isotrope
from isotrope.evaluation.benchmark_files import data_folder
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.transfer import classify
from isotrope.evaluation.transfer_protocols import PROTOCOLS, find_protocol
from isotrope.evaluation.transfer_scores import summarised
from isotrope.evaluation.transfer_tasks import SCORED, find_tasks


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--encoder", default="builtin")
    parser.add_argument("--data-dir")
    parser.add_argument("--tasks", default="CR,TREC")
    parser.add_argument("--protocols", default=",".join(PROTOCOLS))
    given = parser.parse_args()
    encoder = isotrope.load(given.encoder)
    tasks = [task for task in given.tasks.split(",") if task not in SCORED]
    parts = {task: files.labelled() for task, files in find_tasks(data_folder(given.data_dir), tasks).items()}
    every = (text for sides in parts.values() for part in sides for side in part.texts for text in side)
    vectors = TextVectors.encoded(encoder, every)
    print("| task | protocol | accuracy | 95 % interval | C or λ | seconds |\n|---|---|---|---|---|---|")
    for task, sides in parts.items():
        for name in given.protocols.split(","):
            start = time.perf_counter()
            found = summarised(classify(task, sides, vectors, encoder.device, (0,), find_protocol(name)), False)
            seconds = time.perf_counter() - start
            interval, penalty = f"{found.low:.1f} – {found.high:.1f}", float(np.median(found.strengths))
            cells = f"{found.accuracy:.2f} | {interval} | {penalty:.1g} | {seconds:.1f}"
            print(f"| {task} | `{name}` | {cells} |", flush=True)


if __name__ == "__main__":
    main()
