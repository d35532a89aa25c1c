"""What the GPU's benchmarks share: a real run's update, the ways it can go, records of every kind, the clock."""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import torch

LENGTH = 64
LABELS = ("entailment", "neutral", "contradiction")


def say(chosen: argparse.Namespace, **line: Any) -> None:
    """A line of JSON, at once: a call that is cut off keeps what it had."""
    print(json.dumps(line), flush=True)
    if chosen.json:
        with chosen.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def on_gpu() -> bool:
    return torch.cuda.is_available()


def synchronize() -> None:
    if on_gpu():
        torch.cuda.synchronize()


def run(step: Callable[[], Any], count: int) -> float:
    """Seconds of so many steps."""
    synchronize()
    start = time.perf_counter()
    for _ in range(count):
        step()
    synchronize()
    return time.perf_counter() - start


def median_step(step: Callable[[], Any], turns: int, count: int, deadline: float = float("inf")) -> float:
    """Seconds of a step: the median over turns. A graph that is recorded late spoils one of them."""
    seconds = [run(step, count) / count]
    while len(seconds) < turns and time.perf_counter() < deadline:
        seconds.append(run(step, count) / count)
    return statistics.median(seconds)


def ways(*names: str) -> dict[str, Callable[[], Any]]:
    """``before``: padded rows, nothing compiled. ``graphs``: what ``compiled`` always does."""
    from isotrope.encoders.speed import Speed, at_speed
    from isotrope.encoders.unpadded import with_padding

    found: dict[str, Callable[[], Any]] = {
        "before": with_padding,
        "plain": nullcontext,
        "compiled": lambda: at_speed(Speed(compiled=True)),
        "graphs": lambda: at_speed(Speed(compiled=True, graphs=True)),
    }
    return {name: found[name] for name in names or found}


class Trained:
    """The update of a real run, without its log and its evaluations."""

    def __init__(self, method: str, data: Any, model: str, folder: Path, **settings: Any) -> None:
        from isotrope.training.building import build
        from isotrope.training.loop import make_accelerator
        from isotrope.training.opening import open_plan
        from isotrope.training.plan import make_plan
        from isotrope.training.updates import Updater

        settings = {"max_length": LENGTH, "max_steps": 10_000, "max_grad_norm": 1.0, **settings}
        plan = make_plan(method, data, model, folder / "run", adapts=False, final_table=False, **settings)
        self.accelerator = make_accelerator(plan.loop)
        built = build(plan, open_plan(plan, self.accelerator), self.accelerator)
        built.combined.to(self.accelerator.device).train()
        for tactic in built.tactics:
            tactic.prepare(built.feed, self.accelerator)
        self.updater = Updater(built.combined, built.settings, built.steps, built.tactics, self.accelerator)
        self.source = built.feed.batches(skip=0)
        self.number, self.combined, self.size = 0, built.combined, built.settings.batch_size

    def step(self) -> torch.Tensor:
        update = self.updater.update(self.number, self.source)
        self.number += 1
        return update.loss

    def close(self) -> None:
        self.source.close()


def records(kind: str, sentences: Sequence[str], folder: Path) -> Path:
    """A file with records of a kind, made of the sentences."""
    tabled = _tables().get(kind)
    file = folder / f"{kind}.{'txt' if tabled is None else 'jsonl'}"
    if file.exists():
        return file
    used = [" ".join(sentence.split()) for sentence in sentences[:40_000]]
    if tabled is not None:
        columns, row, taken = tabled
        groups = zip(*(used[start::taken] for start in range(taken)), strict=False)
        lines = [json.dumps(dict(zip(columns, row(i, *texts), strict=True))) for i, texts in enumerate(groups)]
    elif kind == "sentences":
        lines = used
    else:  # eight sentences make a document, or a dialogue
        lines = [line for i, text in enumerate(used) for line in (["", text] if i % 8 == 0 else [text])]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def _tables() -> dict[str, tuple[tuple[str, ...], Callable[..., tuple[Any, ...]], int]]:
    """By kind: its columns, the row of some sentences, and how many sentences a row takes."""
    return {
        "pairs": (("anchor", "positive"), lambda i, a, b: (a, b), 2),
        "triples": (("anchor", "positive", "negative"), lambda i, a, b, c: (a, b, c), 3),
        "scored-pairs": (("sentence1", "sentence2", "score"), lambda i, a, b: (a, b, i % 6), 2),
        "labelled": (("text", "label"), lambda i, a: (a, f"class {i % 6}"), 1),
        "labelled-pairs": (("premise", "hypothesis", "label"), lambda i, a, b: (a, b, LABELS[i % 3]), 2),
        "linked": (
            ("sentence", "entity", "entity_type", "page"),
            lambda i, a: (a, f"entity {i % 5000}", f"type {i % 8}", f"page {i // 8}"),
            1,
        ),
    }
