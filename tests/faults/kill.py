"""kill −9 at random moments of every command that writes: nothing half-written, and the end is the same bit by bit.

    python tests/faults/kill.py --moments 200 --markdown table.md

Half of the moments are moments of time, the other half are writes: the process dies at the n-th file that it opens for
writing, renames or removes. After each the folder is looked at as a stranger would: every file that stands under its
final name is whole. Then the same command goes on (where a start is refused, with --resume), sometimes to be killed
again, and what it ends with is compared with a run that nobody killed. Commands run in forks of one process that has
imported everything, so that a moment costs seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["ISOTROPE_FINAL_TABLE"] = "0"

LOOP = "--batch-size 16 --held-out 40 --max-length 24 --learning-rate 1e-3 --eval-steps 1 --logging-steps 1"
SHAPE = "--vocabulary 120 --layers 1 --width 16 --heads 2 --length 32 --batch-size 16"
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"}
CLOCKS = {"seconds", "records_per_second", "tokens_per_second"}
PATIENCE = 600.0  # seconds that a command may take; more is a hang


@dataclass(frozen=True)
class World:
    """The model and the text that every command works on."""

    folder: Path

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def text(self) -> Path:
        return self.folder / "text.txt"

    @property
    def labelled(self) -> Path:
        return self.folder / "labelled.tsv"

    def command(self, name: str, place: Path) -> list[str]:
        out = ["--output", str(place / "out")]
        train = f"--model {self.model} --max-steps 5 {LOOP}"
        return {
            "train": ["train", "simcse", str(self.text), *f"{train} --no-final-table".split(), *out],
            "pretrain": [
                "pretrain",
                str(self.text),
                *f"{SHAPE} --steps 5 --warmup-steps 1 --save-steps 1 --logging-steps 1".split(),
                *out,
            ],
            "encode": ["encode", str(self.model), str(self.text), "--output", str(place / "out" / "vectors.npy")],
            "encode --shards": [
                *f"encode {self.model} {self.text} --shard-size 64 --shards {place / 'out' / 'shards'}".split(),
                *("--output", str(place / "out" / "vectors.npy")),
            ],
            "fit-space": ["fit-space", "whitening", str(self.model), str(self.text), *out],
            "index": ["index", str(self.model), str(self.text), "--precision", "int8", *out],
            "train head": ["train", "head", str(self.labelled), "--model", str(self.model), *out],
            "export": ["export", str(self.model), str(place / "out"), "--text", str(self.text)],
            "compare": [
                *f"compare {self.text} --methods simcse --seeds 2 --model {self.model} --max-steps 2 {LOOP}".split(),
                *out,
            ],
            "compare --parallel 2": [
                *f"compare {self.text} --methods simcse --seeds 2 --model {self.model} --max-steps 2 {LOOP}".split(),
                *("--parallel", "2"),
                *out,
            ],
        }[name]


COMMANDS = ("train", "pretrain", "encode", "encode --shards", "fit-space", "index", "train head", "export", "compare")
COMMANDS += ("compare --parallel 2",)
RESUMABLE = ("train", "pretrain")
ONCE = ("fit-space", "train head", "export")  # one that was killed after its last write is whole, and not replaced
SLOW = ("export", "train head")  # the one traces the model, the other fits many classifiers


@dataclass
class Row:
    """What happened to a command."""

    counts: Counter[str] = field(default_factory=Counter)
    troubles: list[str] = field(default_factory=list)


def forked(work: Callable[[], Any], log: Path) -> int:
    """The process id of a fork in a session of its own that does ``work`` and ends."""
    process = os.fork()
    if process:
        return process
    code = 70
    try:
        os.setsid()
        handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(handle, 1)
        os.dup2(handle, 2)
        work()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def started(arguments: Sequence[str], place: Path, dies_at: int | None = None) -> int:
    """A command in a fork, with a cache below ``place``; it dies at its ``dies_at``-th write."""

    def work() -> None:
        os.environ["ISOTROPE_CACHE"] = str(place / "cache")
        watch_writes(place, dies_at)
        from isotrope.cli import main

        main(arguments)

    return forked(work, place / "log.txt")


def watch_writes(place: Path, dies_at: int | None) -> None:
    """Count what the process changes below ``place``, in a file of one byte a change; die before the n-th."""
    counted = os.open(place.with_suffix(".writes"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    seen = iter(range(1, 1 << 40))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if event not in CHANGES and not (event == "open" and arguments[2] & WRITES):
            return
        path = os.fsdecode(arguments[0]) if isinstance(arguments[0], str | bytes | os.PathLike) else ""
        if not path.startswith(str(place)) or path.endswith("log.txt"):
            return
        os.write(counted, b".")
        if next(seen) == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def ended(process: int, after: float | None = None) -> int:
    """Wait for a process; kill it ``after`` so many seconds. Its exit code; −9 where it was killed."""
    begun = time.monotonic()
    limit = PATIENCE if after is None else after
    while time.monotonic() - begun < limit:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    os.kill(process, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def run(world: World, name: str, place: Path, dies_at: int | None = None, after: float | None = None) -> int:
    """Start the command; where a start is refused, resume. One of the two must work."""
    arguments = world.command(name, place)
    begun = name in RESUMABLE and (place / "out" / "run.json").is_file()  # saves a refusal; anything else is tried
    code = 2 if begun else ended(started(arguments, place, dies_at), after)
    if code == 2 and name in RESUMABLE:
        code = ended(started([*arguments, "--resume"], place, dies_at), after)
    return code


def finals(place: Path) -> list[Path]:
    """Every file under a final name: no part of its path is temporary."""
    from isotrope.leftovers import is_temporary

    return [
        file
        for file in sorted(place.rglob("*"))
        if file.is_file() and not any(is_temporary(part) for part in file.relative_to(place).parts)
    ]


def half_written(place: Path) -> list[str]:
    """What stands under a final name and is not whole."""
    return [f"{file.relative_to(place)}: {wrong}" for file in finals(place) if (wrong := trouble_of(file)) is not None]


def trouble_of(file: Path) -> str | None:
    import numpy as np
    from safetensors import safe_open

    from isotrope.checksums import sum_of
    from isotrope.training.step_folder import StepFolder

    try:
        if file.suffix == ".json":
            json.loads(file.read_text(encoding="utf-8"))
        elif file.suffix == ".jsonl":
            for line in file.read_text(encoding="utf-8").split("\n")[:-1]:
                json.loads(line)
        elif file.suffix == ".safetensors":
            with safe_open(file, "numpy") as tensors:
                for name in tensors.keys():  # noqa: SIM118 - it is no mapping
                    tensors.get_tensor(name)
        elif file.suffix == ".npy":
            np.load(file, allow_pickle=False)
        elif file.suffix == ".onnx":
            told = json.loads((file.parents[1] / "isotrope.json").read_text(encoding="utf-8"))
            return None if told["onnx"]["sum"] == sum_of(file) else "another checksum"
        if file.name == "state.json":
            return StepFolder(file.parent).damage()
        if file.name == "modules.json":
            places = [part["path"] for part in json.loads(file.read_text(encoding="utf-8"))]
            return next((f"{path} is missing" for path in places if not (file.parent / path).is_dir()), None)
    except Exception as error:
        return repr(error)
    return None


def left_over(place: Path) -> list[str]:
    from isotrope.leftovers import is_temporary

    return [
        str(file.relative_to(place))
        for file in place.rglob("*")
        if is_temporary(file.name) or file.name == ".lock" or ".claim" in file.name
    ]


def outcome(place: Path) -> dict[str, str]:
    """The digest of everything that a command ended with, but for clocks and paths."""
    found = {}
    for file in finals(place / "out"):
        name = file.relative_to(place / "out").as_posix()
        if name.startswith("checkpoints/") or "/checkpoints/" in name:
            continue
        if file.suffix in (".safetensors", ".npy", ".txt", ".onnx"):
            found[name] = blake2b(file.read_bytes(), digest_size=16).hexdigest()
        elif file.name == "metrics.jsonl":
            lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
            found[name] = repr([{k: v for k, v in line.items() if k not in CLOCKS} for line in lines])
        elif file.name == "comparison.json":
            runs = json.loads(file.read_text(encoding="utf-8"))["runs"]
            rows = [(one["name"], one["seed"], without_clocks(one["measures"])) for one in runs]
            found[name] = repr(sorted(rows, key=lambda row: row[1]))
    return found


def without_clocks(measures: dict[str, float]) -> list[tuple[str, float]]:
    return sorted((name, value) for name, value in measures.items() if name not in CLOCKS)


def torment(world: World, name: str, moments: int, rng: random.Random, place: Path) -> Row:
    """Kill the command at so many moments; each run is killed once, twice or three times before it may end."""
    row = Row()
    reference = place / "reference"
    reference.mkdir(parents=True)
    begun = time.monotonic()
    if run(world, name, reference):
        row.troubles.append(f"the undisturbed run failed: {(reference / 'log.txt').read_text()[-400:]}")
        return row
    seconds, writes = time.monotonic() - begun, reference.with_suffix(".writes").stat().st_size
    wanted = outcome(reference)
    assert wanted, name
    while row.counts["moments"] < moments:
        trial = place / f"trial-{row.counts['trials']}"
        trial.mkdir()
        row.counts["trials"] += 1
        kills = min(rng.choice((1, 1, 2, 3)), moments - row.counts["moments"])
        for _ in range(kills):
            by_write = row.counts["moments"] % 2 == 1
            at = rng.randint(1, writes) if by_write else None
            code = run(world, name, trial, at, None if by_write else rng.uniform(0, seconds))
            killed = code == -signal.SIGKILL
            row.counts["moments"] += killed
            row.counts["at a write" if by_write else "at a time"] += killed
            if code not in (0, -signal.SIGKILL):
                row.troubles.append(f"{trial.name}: exit code {code}: {(trial / 'log.txt').read_text()[-600:]}")
            found = half_written(trial)
            row.counts["half-written"] += len(found)
            row.troubles += [f"{trial.name}: half-written: {one}" for one in found]
            if not killed:
                break  # it ended before its moment came
        code = run(world, name, trial)
        same = (code == 0 or (code == 2 and name in ONCE)) and outcome(trial) == wanted
        row.counts["equal"] += same
        if not same:
            row.troubles.append(f"{trial.name}: ended with {code}: {differing(outcome(trial), wanted)}")
            row.troubles.append((trial / "log.txt").read_text()[-600:])
        row.counts["left-overs"] += len(left_over(trial))
        row.troubles += [f"{trial.name}: left over: {one}" for one in left_over(trial)]
        if same and not left_over(trial):
            shutil.rmtree(trial)
    return row


def differing(found: dict[str, str], wanted: dict[str, str]) -> list[str]:
    return [name for name in {**found, **wanted} if found.get(name) != wanted.get(name)]


def prepare(folder: Path) -> World:
    """A tiny model and a small text, made in a fork: this process must have started no thread when it forks."""
    world = World(folder)
    lines = [f"the {w} of town {n} sends letter {n % 7} to the {v} by road {n % 5}" for n, (w, v) in enumerate(PEOPLE)]
    world.text.write_text("\n\n".join("\n".join(lines[i : i + 4]) for i in range(0, len(lines), 4)) + "\n", "utf-8")

    rows = [f"{line}\t{'even' if number % 2 else 'odd'}" for number, line in enumerate(lines)]
    world.labelled.write_text("\n".join(["text\tlabel", *rows]) + "\n", "utf-8")

    def work() -> None:
        from isotrope.encoders.fresh import fresh_encoder

        fresh_encoder(lines, vocabulary=300, layers=1, width=16, heads=2, max_length=32).save(world.model)

    if ended(forked(work, folder / "log.txt")):
        raise SystemExit((folder / "log.txt").read_text())
    return world


WORDS = ("baker", "pilot", "sailor", "farmer", "pianist", "doctor", "judge", "miller")
PEOPLE = [(WORDS[n % 8], WORDS[(n * 3 + n // 8) % 8]) for n in range(320)]
HEADS = ("trials", "moments", "at a time", "at a write", "half-written", "equal", "left-overs")


def table(rows: dict[str, Row]) -> str:
    lines = [f"| command | {' | '.join(HEADS)} |", f"|---|{'---:|' * len(HEADS)}"]
    for name, row in rows.items():
        lines.append(f"| `{name}` | {' | '.join(str(row.counts[head]) for head in HEADS)} |")
    return "\n".join(lines) + "\n"


def shares(names: Sequence[str], moments: int) -> dict[str, int]:
    """How many moments each command has; those that start processes of their own are slow, and have fewer."""
    weights = {name: 1 if "parallel" in name else 2 if name in SLOW else 4 for name in names}
    total = sum(weights.values())
    return {name: max(round(moments * weight / total), 1) for name, weight in weights.items()}


def main(arguments: Sequence[str] | None = None) -> dict[str, Row]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moments", type=int, default=200)
    parser.add_argument("--commands", default=",".join(COMMANDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", type=Path)
    parser.add_argument("--folder", type=Path, help="where to work; default: a temporary folder that is removed")
    given = parser.parse_args(arguments)
    place = given.folder or Path(tempfile.mkdtemp(prefix="isotrope-kill-"))
    place.mkdir(parents=True, exist_ok=True)
    import_everything()
    world = prepare(place)
    rows: dict[str, Row] = {}
    for number, (name, moments) in enumerate(shares(given.commands.split(","), given.moments).items()):
        rows[name] = torment(world, name, moments, random.Random(given.seed * 100 + number), place / f"c{number}")
        print(f"{name}: {dict(rows[name].counts)}", flush=True)
        for trouble in rows[name].troubles:
            print(f"  {trouble}", flush=True)
    if given.markdown:
        given.markdown.write_text(table(rows), encoding="utf-8")
    print(table(rows))
    if given.folder is None and not any(row.troubles for row in rows.values()):
        shutil.rmtree(place, ignore_errors=True)
    return rows


def import_everything() -> None:
    """What every fork needs, imported once."""
    import accelerate  # noqa: F401
    import bm25s  # noqa: F401
    import scipy.stats  # noqa: F401
    import torch
    import transformers.models.bert.modeling_bert  # noqa: F401

    import isotrope.comparison.compare
    import isotrope.comparison.line_up
    import isotrope.comparison.one_run
    import isotrope.encoders.fresh
    import isotrope.evaluation.worth
    import isotrope.search.folder_building
    import isotrope.search.index_making
    import isotrope.spaces.space_registry
    import isotrope.training.head_run
    import isotrope.training.pretrain_run
    import isotrope.training.run

    torch.set_num_threads(1)
    isotrope.search.folder_building.ROWS = 16  # several blocks of a small text


if __name__ == "__main__":
    sys.exit(1 if any(row.troubles for row in main().values()) else 0)
