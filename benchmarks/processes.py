"""Records a second of every method with one and with two processes of torchrun, one thread each.

    python benchmarks/processes.py [--methods simcse,moco] [--steps 12]

The global batch is the same, so two processes do half of it each. On a machine with two quiet cores the best is 2.0.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from memory import WORDS

HERE = Path(__file__)
BATCH = 64


def files(folder: Path) -> dict[str, Path]:
    """A small file of each record type that methods need."""
    import random

    draw = random.Random(0)
    lines = [" ".join(draw.choices(WORDS, k=draw.randint(6, 14))) for _ in range(1200)]
    rows = {
        "sentences": ("sentence", [(line,) for line in lines]),
        "pairs": ("first\tsecond", list(itertools.pairwise(lines))),
        "triples": ("anchor\tpositive\tnegative", list(zip(lines, lines[1:], lines[2:], strict=False))),
        "labelled": ("sentence\tlabel", [(line, str(number % 4)) for number, line in enumerate(lines)]),
        "scored-pairs": (
            "first\tsecond\tscore",
            [(a, b, f"{n % 6}") for n, (a, b) in enumerate(itertools.pairwise(lines))],
        ),
    }
    found = {}
    for name, (header, records) in rows.items():
        found[name] = folder / f"{name}.tsv"
        text = "\n".join("\t".join(record) for record in records)
        found[name].write_text(f"{header}\n{text}\n", encoding="utf-8")
    documents = folder / "documents.txt"
    documents.write_text("\n\n".join("\n".join(lines[i : i + 8]) for i in range(0, 1200, 8)) + "\n", encoding="utf-8")
    return {**found, "documents": documents}


def work(given: dict[str, Any], output: Path) -> None:
    """In each process of torchrun: every method after the other; the first process notes the rates."""
    import warnings

    import isotrope
    from isotrope.errors import InputError
    from isotrope.methods.frame.from_scratch import FromScratch
    from isotrope.methods.frame.method_registry import registry

    warnings.simplefilter("ignore")
    rates: dict[str, float | str] = {}
    for name, method in registry().items():
        wanted = given["methods"] in ("all", "") or name in given["methods"].split(",")
        types = [one for one in method.record_types(method.Settings()) if one in given["files"]]
        if method.card.kind != "training" or not wanted or not types:
            continue
        start = {} if issubclass(method, FromScratch) else {"model": given["model"]}
        loop = {"max_steps": given["steps"], "eval_steps": given["steps"], "logging_steps": 1, "batch_size": BATCH}
        try:
            run = isotrope.train(
                name,
                given["files"][types[0]],
                output=output / name,
                held_out=64,
                max_length=32,
                final_table=False,
                **loop,
                **start,
            )
            lines = [line["records_per_second"] for line in run.history if "records_per_second" in line]
            rates[name] = statistics.median(lines[2:])
        except InputError as error:
            rates[name] = str(error)
    if os.environ.get("RANK", "0") == "0":
        (output / "rates.json").write_text(json.dumps(rates), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", default="all")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(json.loads((options.work / "given.json").read_text()), options.work)
        return
    from isotrope.encoders.fresh import fresh_encoder

    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        model = folder / "model"
        fresh_encoder([" ".join(WORDS)] * 50, vocabulary=2000, layers=4, width=256, heads=4).save(model)
        texts = {name: str(file) for name, file in files(folder).items()}
        for count in (1, 2):
            output = folder / str(count)
            output.mkdir()
            given = {"methods": options.methods, "steps": options.steps, "model": str(model), "files": texts}
            (output / "given.json").write_text(json.dumps(given), encoding="utf-8")
            launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
            environment = {**os.environ, "OMP_NUM_THREADS": "1", "ISOTROPE_CACHE": str(folder / "cache")}
            done = subprocess.run(
                [*launch, str(HERE), "--work", str(output)],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                sys.exit(done.stderr[-3000:])
            found[count] = json.loads((output / "rates.json").read_text())
    print("| method | 1 process, records/s | 2 processes | ratio |\n|---|---:|---:|---:|")
    for name in found[1]:
        one, two = found[1][name], found[2][name]
        if isinstance(one, str) or isinstance(two, str):
            print(f"| `{name}` | {one} | {two} | |")
        else:
            print(f"| `{name}` | {one:,.0f} | {two:,.0f} | {two / one:.2f} |")


if __name__ == "__main__":
    main()
