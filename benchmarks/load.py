"""Peak memory of encode, search, mine and train on 10 thousand, 100 thousand and 1 million lines; flat is the goal.

    python benchmarks/load.py [--lines 10000,100000,1000000] [--commands encode,search,mine,train]

Each command is a process of its own; the peak is what the kernel says of it when it has ended.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from memory import WORDS, write_lines

COMMANDS = {
    "encode": "encode builtin-static {text} --output {folder}/v.npy",
    "encode --shards": "encode builtin-static {text} --shards {folder}/shards",
    "search": "search builtin-static {text} time --json",
    "mine": "mine {pairs} --model builtin-static --output {folder}/t.tsv",
    "train": "train simcse {text} --model {folder}/model --output {folder}/run --max-steps 20 --eval-steps 20 "
    "--batch-size 64 --no-final-table --held-out 500",
}


def measured(words: list[str], folder: Path) -> tuple[int, float]:
    """Bytes and seconds of one command."""
    begun = time.perf_counter()
    environment = {**os.environ, "ISOTROPE_CACHE": str(folder / "cache"), "ISOTROPE_FINAL_TABLE": "0"}
    with open(folder / "log.txt", "wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "isotrope", *words], stdout=log, stderr=log, env=environment
        )
        _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit((folder / "log.txt").read_text(errors="replace")[-2000:])
    return usage.ru_maxrss * 1024, time.perf_counter() - begun


def write_pairs(text: Path, target: Path) -> None:
    """Each line with the one before it."""
    with open(text, encoding="utf-8") as lines, open(target, "w", encoding="utf-8") as pairs:
        pairs.write("anchor\tpositive\n")
        before = next(lines).strip()
        for line in lines:
            pairs.write(f"{before}\t{line}")
            before = line.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", default="10000,100000,1000000")
    parser.add_argument("--commands", default=",".join(COMMANDS))
    given = parser.parse_args()
    sizes = [int(size) for size in given.lines.split(",")]
    from isotrope.encoders.fresh import fresh_encoder

    print(f"| command | {' | '.join(f'{size:,} lines' for size in sizes)} |\n|---|{'---:|' * len(sizes)}")
    with tempfile.TemporaryDirectory() as place:
        model = Path(place, "model")
        fresh_encoder([" ".join(WORDS)] * 50, vocabulary=2000, layers=2, width=128, heads=2).save(model)
        for size in sizes:
            write_lines(Path(place, f"{size}.txt"), size)
            if "mine" in given.commands:
                write_pairs(Path(place, f"{size}.txt"), Path(place, f"{size}.tsv"))
        for command in given.commands.split(","):
            cells = []
            for size in sizes:
                folder = Path(place, f"{command.split()[0]}-{len(command)}-{size}")
                folder.mkdir()
                (folder / "model").symlink_to(model)
                words = (
                    COMMANDS[command]
                    .format(text=Path(place, f"{size}.txt"), pairs=Path(place, f"{size}.tsv"), folder=folder)
                    .split()
                )
                peak, seconds = measured(words, folder)
                cells.append(f"{peak / 1e6:,.0f} MB, {seconds:,.0f} s")
            print(f"| `{command}` | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
