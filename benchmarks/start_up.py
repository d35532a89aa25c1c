"""What a user waits for before anything happens: each a new process, by the clock and in processor time.

    python benchmarks/start_up.py [--times 5] [--json]

The figure is the median of the times. A first run that does not count brings the files into the page cache and writes
Python's compiled ones.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

VECTOR = "import isotrope; isotrope.load('{}').encode(['x'])"
COMMANDS = {
    "`import isotrope`": ["-c", "import isotrope"],
    "`isotrope --help`": ["-m", "isotrope", "--help"],
    "`import torch`": ["-c", "import torch"],
    "first vector, `builtin-static`": ["-c", VECTOR.format("builtin-static")],
    "first vector, `builtin`": ["-c", VECTOR.format("builtin")],
    "`isotrope encode builtin`, two lines": ["-m", "isotrope", "encode", "builtin", "{text}", "--output", "{vectors}"],
    "the same with transformers' model": ["-c", VECTOR.format("builtin").replace(".encode", ".train().eval().encode")],
}


def measured(words: list[str], folder: Path) -> tuple[float, float]:
    """Seconds by the clock and of the processor."""
    named = {"text": folder / "two.txt", "vectors": folder / "vectors.npy"}
    (folder / "vectors.npy").unlink(missing_ok=True)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *(word.format(**named) for word in words)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**environment, "PYTHONPYCACHEPREFIX": str(folder / "compiled")},
    )
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{' '.join(words)}: exit status {status}")
    return time.perf_counter() - begun, usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / "two.txt").write_text("one\ntwo\n", encoding="utf-8")
        for name, words in COMMANDS.items():
            runs = [measured(words, folder) for _ in range(given.times + 1)][1:]
            clock, processor = (statistics.median(column) for column in zip(*runs, strict=True))
            found[name] = {"seconds": clock, "processor_seconds": processor}
    if given.json:
        print(json.dumps(found, indent=2))
        return
    print("| new process | seconds | processor seconds |\n|---|---:|---:|")
    for name, one in found.items():
        print(f"| {name} | {one['seconds']:.2f} | {one['processor_seconds']:.2f} |")


if __name__ == "__main__":
    main()
