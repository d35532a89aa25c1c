"""Resident memory of training on a corpus much larger than memory should hold: 10 million lines by default.

    python benchmarks/memory.py [--lines 10000000] [--steps 50]

Makes the corpus, tokenizes it into the cache and trains SimCSE on it in a process of its own, and prints that process's
peak.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WORDS = """
time year people way day man thing woman life child world school state family student group country problem hand part
place case week company system program question work government number night point home water room mother area money
story fact month lot right study book eye job word business issue side kind head house service friend father power
hour game line end member law car city community name president team minute idea kid body information back parent face
others level office door health person art war history party result change morning reason research girl guy moment air
teacher force education
""".split()

CHILD = """
import json, sys
import isotrope
corpus, model, output, steps = sys.argv[1:]
loop = {"max_steps": int(steps), "eval_steps": int(steps), "batch_size": 64}
run = isotrope.train("simcse", corpus, model=model, output=output, final_table=False, **loop)
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
peak, now = (int(status[name].split()[0]) for name in ("VmHWM", "VmRSS"))
print(json.dumps({"records": len(run.corpus), "peak": peak, "now": now}))
"""


def write_lines(path: Path, lines: int) -> None:
    draw = random.Random(0)
    with open(path, "w", encoding="utf-8") as target:
        for start in range(0, lines, 10_000):
            block = [" ".join(draw.choices(WORDS, k=draw.randint(6, 14))) for _ in range(min(10_000, lines - start))]
            target.write("\n".join(block) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=10_000_000)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    from isotrope.encoders.fresh import fresh_encoder

    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_lines(folder / "corpus.txt", options.lines)
        fresh_encoder([" ".join(WORDS)] * 50, vocabulary=2000, layers=4, width=256, heads=4).save(folder / "model")
        begun = time.perf_counter()
        environment = {**os.environ, "ISOTROPE_CACHE": str(folder / "cache")}
        arguments = [str(folder / "corpus.txt"), str(folder / "model"), str(folder / "run"), str(options.steps)]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", CHILD, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(done.stderr)
        found = json.loads(done.stdout.splitlines()[-1])
        size = (folder / "corpus.txt").stat().st_size / 1e6
    found = {
        **found,
        "corpus_mb": round(size),
        "peak_mb": found["peak"] // 1024,
        "seconds": round(time.perf_counter() - begun),
    }
    if options.json:
        print(json.dumps(found))
    else:
        print(
            f"{found['records']:,} lines ({found['corpus_mb']:,} MB of text), {options.steps} steps: "
            f"peak {found['peak_mb']:,} MB resident"
        )
        print(f"({found['seconds']} seconds, tokenizing included)")


if __name__ == "__main__":
    main()
