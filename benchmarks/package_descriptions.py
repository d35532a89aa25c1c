"""Package descriptions: the short one must find the long one. What do adapting, whitening and shared words reach?

    python benchmarks/package_descriptions.py [ROW …] [--lists DIR] [--packages FILE] [--output DIR] [--queries N]
    [--train N] [--test N]

The set is made of the package lists of apt on this machine: one package a source package, its short description and its
long one. A fifth of the source packages is held out. MRR × 100 of the short descriptions of held-out packages among the
long ones of all packages (with --test N among those of N held-out packages). A ROW is one of those below, or a model: a
folder, a run, a hub id; "TF-IDF + ROW" adds the scores of both. Each row is printed with the command that made it; a
model that is there already is taken as it is.

The long descriptions are in apt's translation lists, which many small systems leave out. They are fetched by

    mkdir -p lists/partial && apt-get -o Dir::State::lists=$PWD/lists -o Acquire::Languages=en update

For a machine without them ``--packages FILE`` (.tsv.xz) keeps the whole set: it is written where it is not there, and
read where it is. Where the command line cannot start, ``--by-api`` calls the commands through api_commands.py.
"""

from __future__ import annotations

import argparse
import lzma
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

APT_HELPER = "/usr/lib/apt/apt-helper"
TF_IDF, PLUS = "TF-IDF", "TF-IDF + "
HYBRID = f"{PLUS}adapted"
COMMANDS = {  # by row, in the order of the table; {data} and {out} are folders
    "builtin": "",
    "static": "",
    "whitening": "fit-space whitening builtin {data}/text.txt --output {out}/whitening",
    "simcse": "train simcse {data}/text.txt --output {out}/simcse",
    "adapted-text": "train {data}/text.txt --output {out}/adapted-text",
    "adapted-static": "train {data}/pairs.tsv --model builtin-static --output {out}/adapted-static",
    "adapted": "train {data}/pairs.tsv --output {out}/adapted",
}
PLAIN = {"builtin": "builtin", "static": "builtin-static"}


class Package(NamedTuple):
    name: str
    source: str
    short: str
    long: str


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("rows", nargs="*", help=f"{', '.join([TF_IDF, *COMMANDS, HYBRID])}, or a model; default: all")
    options.add_argument("--lists", type=Path, help="a folder of apt's lists; default: the system's")
    options.add_argument("--packages", type=Path, help="a .tsv.xz file of the set; written where it is not there")
    options.add_argument("--output", type=Path, default=Path("package-descriptions"))
    options.add_argument("--queries", type=int, default=2000, help="held-out packages that are asked for, at most")
    options.add_argument("--train", type=int, help="packages to train on, at most")
    options.add_argument("--test", type=int, help="candidates: the first N held-out packages; default: all packages")
    options.add_argument("--options", default="", help="options for the commands that train, as in '--max-steps 100'")
    options.add_argument("--by-api", action="store_true", help="commands by the Python API")
    chosen = options.parse_args()
    train, test = split(kept_packages(chosen.packages, chosen.lists))
    print(f"{len(train) + len(test):,} packages, {len(test):,} of them held out")
    write(chosen.output, train[: chosen.train])
    candidates = test[: chosen.test] if chosen.test else [*test, *train]
    asked = min(chosen.queries, len(test), len(candidates))
    queries, texts = [one.short for one in candidates[:asked]], [one.long for one in candidates]
    print(f"{len(queries):,} short descriptions of held-out packages look for their own among {len(texts):,} long ones")
    print(f"minutes of the commands on {machine()}")
    print(f"{'row':18} {'MRR':>6} {'first':>6} {'minutes':>8}  command")
    for row in chosen.rows or [TF_IDF, *COMMANDS, HYBRID]:
        judge(row, queries, texts, train, chosen)


def kept_packages(file: Path | None, lists: Path | None) -> list[Package]:
    """The set of ``file``, which is made of apt's lists where it is not there."""
    if file is None:
        return packages(lists)
    if not file.is_file():
        rows = "".join("\t".join(one) + "\n" for one in packages(lists))
        file.write_bytes(lzma.compress(rows.encode(), preset=9 | lzma.PRESET_EXTREME))
    lines = lzma.decompress(file.read_bytes()).decode().removesuffix("\n").split("\n")
    return [Package(*line.split("\t")) for line in lines]


def machine() -> str:
    import torch

    found = torch.cuda.get_device_name() if torch.cuda.is_available() else "the CPU"
    return f"{found}, {torch.get_num_threads()} threads"


def packages(lists: Path | None) -> list[Package]:
    """One package a source package: the one that is called like it, else the first; no description stands twice."""
    place = [] if lists is None else ["-o", f"Dir::State::lists={lists.resolve()}"]
    sources = source_names(run("apt-cache", *place, "dumpavail"))
    wanted = ["-o", "Acquire::Languages=en", "indextargets", "--format", "$(FILENAME)", "Created-By: Translations"]
    files = [file for file in run("apt-get", *place, *wanted).split() if Path(file).is_file()]
    if not files:
        sys.exit(f"apt has no long descriptions here; fetch them:\n{__doc__.split('fetched by')[1].strip()}")
    found: dict[str, Package] = {}
    for file in files:
        for name, short, long in descriptions(run(APT_HELPER, "cat-file", file)):
            source = sources.get(name, name)
            if source not in found or name == source:
                found[source] = Package(name, source, short, long)
    shorts: set[str] = set()
    longs: set[str] = set()
    kept = []
    for one in sorted(found.values()):
        if one.short not in shorts and one.long not in longs:
            kept.append(one)
            shorts.add(one.short)
            longs.add(one.long)
    return kept


def source_names(text: str) -> dict[str, str]:
    found, name = {}, ""
    for line in text.splitlines():
        if line.startswith("Package: "):
            name = line[9:]
        elif line.startswith("Source: "):
            found[name] = line[8:].split()[0]
    return found


def descriptions(text: str):
    """(package, short line, long text) of each record that has all three."""
    for record in text.split("\n\n"):
        lines = record.splitlines()
        name = next((line[9:] for line in lines if line.startswith("Package: ")), "")
        start = next((row for row, line in enumerate(lines) if line.startswith("Description-en: ")), None)
        if not name or start is None:
            continue
        following = [line.strip() for line in lines[start + 1 :] if line.startswith(" ")]
        long = " ".join(" ".join(line for line in following if line != ".").split())
        if long:
            yield name, " ".join(lines[start][16:].split()), long


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def split(found: list[Package]) -> tuple[list[Package], list[Package]]:
    """(to train on, held out): a fifth is held out, drawn at random, always the same."""
    order = sorted(found)
    random.Random(0).shuffle(order)
    fifth = len(order) // 5
    return order[fifth:], order[:fifth]


def write(folder: Path, train: list[Package]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pairs = "".join(f"{one.short}\t{one.long}\n" for one in train)
    (folder / "pairs.tsv").write_text(f"anchor\tpositive\n{pairs}", encoding="utf-8")
    (folder / "text.txt").write_text("".join(f"{one.long}\n" for one in train), encoding="utf-8")


def judge(row: str, queries: list[str], texts: list[str], train: list[Package], chosen: argparse.Namespace) -> None:
    """Make the row's model where it is not there yet, and print its line."""
    folder = chosen.output
    if row == TF_IDF or row.startswith(PLUS):
        scores, how = tf_idf(queries, texts, train), "scikit-learn, sublinear, English stop words"
        if row != TF_IDF:
            name = row.removeprefix(PLUS)
            place = PLAIN.get(name, str(folder / name) if name in COMMANDS else name)
            scores, how = standard(scores) + standard(dense(place, queries, texts)), "both scores, standardised, added"
        show(row, scores, 0.0, how)
        return
    command = COMMANDS.get(row, "").format(data=folder, out=folder)
    if row.startswith(("simcse", "adapted")) and command:
        command = f"{command} --no-final-table {chosen.options}".strip()
    place, seconds = folder / row, 0.0
    if command and not place.exists():
        began = time.perf_counter()
        program = [str(Path(__file__).parent / "api_commands.py")] if chosen.by_api else ["-m", "isotrope"]
        subprocess.run([sys.executable, *program, *command.split()], check=True, stdout=sys.stderr)
        seconds = time.perf_counter() - began
    scores = dense(str(place) if command else PLAIN.get(row, row), queries, texts)
    show(row, scores, seconds, f"isotrope {command}" if command else "as it is")


def tf_idf(queries: list[str], texts: list[str], train: list[Package]) -> np.ndarray:
    """scikit-learn's, sublinear, without English stop words; words are weighed by the long descriptions."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    model = TfidfVectorizer(sublinear_tf=True, stop_words="english").fit({*texts, *(one.long for one in train)})
    return np.asarray((model.transform(queries) @ model.transform(texts).T).todense(), dtype=np.float32)


def dense(model: str, queries: list[str], texts: list[str]) -> np.ndarray:
    import isotrope

    encoder = isotrope.load(model)
    return encoder.encode(queries, normalize_embeddings=True) @ encoder.encode(texts, normalize_embeddings=True).T


def standard(scores: np.ndarray) -> np.ndarray:
    deviation = scores.std(axis=1, keepdims=True)
    return (scores - scores.mean(axis=1, keepdims=True)) / np.where(deviation > 0, deviation, 1)


def show(row: str, scores: np.ndarray, seconds: float, command: str) -> None:
    """Query i looks for text i; ties count half."""
    own = scores[np.arange(len(scores)), np.arange(len(scores))][:, None]
    ranks = 1 + (scores > own).sum(axis=1) + ((scores == own).sum(axis=1) - 1) / 2
    mrr, first = 100 * (1 / ranks).mean(), 100 * (ranks < 1.5).mean()
    print(f"{row:18} {mrr:6.1f} {first:6.1f} {seconds / 60:8.1f}  {command}", flush=True)


if __name__ == "__main__":
    main()
