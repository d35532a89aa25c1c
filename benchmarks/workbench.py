"""What the comparisons share: real sentences, a model of a usual size, turns, memory, a table."""

from __future__ import annotations

import json
import lzma
import os
import pkgutil
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")  # before transformers is imported
CORPUS = Path(__file__).parents[2] / "shared" / "data" / "corpora" / "wiki_docs.txt.xz"


def real_sentences(count: int) -> list[str]:
    """Of a real corpus where it is on this machine, else of the docstrings of Python's standard library."""
    lines = _corpus_lines() if CORPUS.is_file() else _docstring_sentences()
    found: dict[str, None] = {}
    for line in lines:
        if 15 <= len(line) <= 400:
            found.setdefault(line)
        if len(found) == count:
            break
    return list(found)


def _corpus_lines():
    with lzma.open(CORPUS, "rt", encoding="utf-8") as source:
        for line in source:
            yield line.strip()


def _docstring_sentences():
    import ast

    root = Path(os.__file__).parent
    for module in sorted(module.name for module in pkgutil.iter_modules([str(root)]) if not module.ispkg):
        try:
            tree = ast.parse((root / f"{module}.py").read_text(encoding="utf-8"))
        except (OSError, SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and (text := ast.get_docstring(node)):
                yield from (" ".join(sentence.split()) for sentence in re.split(r"(?<=[.!?])\s+|\n\n", text))


def make_model(sentences: list[str]):
    """Six layers of 384, the size of the small models people serve; random weights cost the same as trained ones."""
    from isotrope.encoders.fresh import fresh_encoder

    return fresh_encoder(sentences, vocabulary=8192, layers=6, width=384, heads=6, max_length=128)


def use_threads(count: int | None) -> None:
    import torch

    if count:
        torch.set_num_threads(count)


def resident_growth(work: Callable[[], Any]) -> int:
    """Bytes by which the resident set rises at its highest during ``work``, above what is resident before it.

    The kernel's high-water mark is set back first, or the peak of loading the model would be counted as the work's.
    """
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    work()
    return _status("VmHWM") - before


def _status(name: str) -> int:
    found = re.search(rf"{name}:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) * 1024


@dataclass
class Result:
    seconds: dict[str, list[float]]
    processor_seconds: dict[str, list[float]]
    memory: dict[str, int] = field(default_factory=dict)

    @property
    def ratio(self) -> float:
        """How many times faster the first is: the median of the ratios of each turn."""
        return _median_ratio(self.seconds)

    @property
    def processor_ratio(self) -> float:
        """The same in processor time, which others on the machine disturb less; with one thread it is the fairer number
        there.
        """
        return _median_ratio(self.processor_seconds)


def _median_ratio(seconds: dict[str, list[float]]) -> float:
    first, second = seconds.values()
    return statistics.median(b / a for a, b in zip(first, second, strict=True))


class Contest:
    def __init__(self, contestants: dict[str, Callable[[], Any]]) -> None:
        self.contestants = contestants

    def run(self, turns: int) -> Result:
        """After one turn that does not count; who goes first changes each turn."""
        result = Result({name: [] for name in self.contestants}, {name: [] for name in self.contestants})
        for turn in range(-1, turns):
            order = list(self.contestants) if turn % 2 else list(self.contestants)[::-1]
            for name in order:
                start, busy = time.perf_counter(), time.process_time()
                self.contestants[name]()
                if turn >= 0:
                    result.seconds[name].append(time.perf_counter() - start)
                    result.processor_seconds[name].append(time.process_time() - busy)
        return result

    def memory_of(self, script: str, name: str, folder: str, quick: bool, *more: str) -> int:
        """In a process of its own: the peak of a process never falls again."""
        command = [
            sys.executable,
            script,
            "--memory-of",
            name,
            "--folder",
            folder,
            *(["--quick"] if quick else []),
            *more,
        ]
        return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])


def print_result(result: Result, title: str, items: int, unit: str, facts: dict[str, float], as_json: bool) -> None:
    medians = {name: statistics.median(times) for name, times in result.seconds.items()}
    if as_json:
        memory = {name: round(size / 1e6, 1) for name, size in result.memory.items()}
        ratios = {"ratio": result.ratio, "processor_ratio": result.processor_ratio}
        print(json.dumps({"task": title, **ratios, "median_s": medians, "rss_growth_mb": memory, **facts}, indent=2))
        return
    print(f"{title}; {len(next(iter(result.seconds.values())))} turns, {os.cpu_count()} cores")
    print(f"{'':24}{'median s':>12}{'range s':>18}{unit:>16}{'RSS growth MB':>16}")
    for name, times in result.seconds.items():
        spread = f"{min(times):.2f} to {max(times):.2f}"
        print(
            f"{name:24}{medians[name]:12.3f}{spread:>18}{items / medians[name]:16,.0f}"
            f"{result.memory[name] / 1e6:16,.0f}"
        )
    print(
        f"isotrope is {result.ratio:.2f} times as fast by the clock, {result.processor_ratio:.2f} in processor time "
        "(medians of the turns)"
    )
    for name, value in facts.items():
        print(f"{name}: {value:.6g}")
