"""Lines a second of the search for leaks, and its memory; and how much faster it is than two plainer ways.

    python benchmarks/leaks.py TEXT [--against FILE …] [--data-dir DIR] [--lines N] [--turns N] [--naive N]

`words` is exact as well: each protected sentence is looked for in the lines that have its rarest word. `naive` holds
every protected sentence against every line, so it gets few lines. All run in this process, in turns, and must find the
same; times are processor time, which others on the machine disturb least. Times are printed, never asserted.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections import Counter
from itertools import islice
from pathlib import Path

from workbench import Contest, resident_growth

from isotrope.data.compared_words import words_of
from isotrope.data.leaks import find_leaks, protect
from isotrope.data.protected_sentences import Protected
from isotrope.data.text_lines import lines_of
from isotrope.data.word_runs import WIDTH
from isotrope.evaluation.benchmark_files import protected_files


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("text", type=Path, help=".txt, plain or packed")
    options.add_argument("--against", type=Path, nargs="+", default=[])
    options.add_argument("--data-dir", type=Path)
    options.add_argument("--lines", type=int, default=50_000)
    options.add_argument("--turns", type=int, default=3)
    options.add_argument("--naive", type=int, default=20, help="lines for the naive way")
    chosen = options.parse_args()
    files = [*chosen.against, *(protected_files(chosen.data_dir) if chosen.data_dir or not chosen.against else [])]
    protected: list[Protected] = []
    busy = time.process_time()
    grown = resident_growth(lambda: protected.append(protect(files)))
    guard = protected[0]
    print(f"{len(guard.sets):,} protected sentences: {time.process_time() - busy:.1f} s, {grown / 1e6:.0f} MB")
    lines = [line for _, line in islice(lines_of(chosen.text), chosen.lines)]
    anchored = Anchored(guard)
    few = lines[: chosen.naive]
    assert [naive(guard, line) for line in few] == [anchored.found_in(line) for line in few]
    assert [anchored.found_in(line) for line in lines] == [set(found) for found in every(guard, lines)]
    with tempfile.TemporaryDirectory() as temporary:
        text = Path(temporary) / "text.txt"
        text.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        grown = resident_growth(lambda: find_leaks([text], guard))
        contest = Contest(
            {
                "leaks": lambda: find_leaks([text], guard),
                "words": lambda: [anchored.found_in(line) for line in lines],
                "naive": lambda: [naive(guard, line) for line in few],
            }
        )
        seconds = contest.run(chosen.turns).processor_seconds
    print(f"{len(lines):,} lines; memory rises by {grown / 1e6:.0f} MB over that of the protected sentences")
    print(f"{'':8} {'lines/s':>12} {'leaks is faster by':>20}")
    counts = {"leaks": len(lines), "words": len(lines), "naive": len(few)}
    for name, times in seconds.items():
        pairs = zip(seconds["leaks"], times, strict=True)
        ratio = statistics.median((other / counts[name]) / (own / counts["leaks"]) for own, other in pairs)
        print(f"{name:8} {counts[name] / statistics.median(times):>12,.1f} {ratio:>20,.1f}")


def every(guard: Protected, lines: list[str]) -> list[set[str]]:
    found = guard.found_among([words_of(line) for line in lines])
    return [found.get(number, set()) for number in range(len(lines))]


def naive(guard: Protected, line: str) -> set[str]:
    joined = " ".join(words_of(line))
    return {
        sentence
        for sentence in guard.sets
        if sentence == joined or (f" {sentence} " in f" {joined} " and sentence.count(" ") >= WIDTH - 1)
    }


class Anchored:
    """Long sentences by their rarest word."""

    def __init__(self, guard: Protected) -> None:
        self.sentences = guard.sets
        frequency = Counter(word for sentence in self.sentences for word in sentence.split())
        self.by_word: dict[str, list[str]] = {}
        for sentence in self.sentences:
            words = sentence.split()
            if len(words) >= WIDTH:
                self.by_word.setdefault(min(words, key=lambda word: (frequency[word], word)), []).append(sentence)

    def found_in(self, line: str) -> set[str]:
        words = words_of(line)
        joined = " ".join(words)
        padded = f" {joined} "
        held = (one for word in self.by_word.keys() & set(words) for one in self.by_word[word])
        return {one for one in held if f" {one} " in padded} | ({joined} & self.sentences.keys())


if __name__ == "__main__":
    main()
