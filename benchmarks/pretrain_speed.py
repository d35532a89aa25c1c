"""Pre-training's tokens a second on a GPU: the way before (a compiled model of transformers, or graphs), and now.

    python benchmarks/pretrain_speed.py                     mlm and mlm,sop, both ways, about two minutes
    python benchmarks/pretrain_speed.py --tasks mlm         one of them
    python benchmarks/pretrain_speed.py --ways compiled,now     without the way before, and without graphs
    python benchmarks/pretrain_speed.py --tiny              a rehearsal on a CPU

First the loss and the gradient of one batch are compared. Then each way trains from the same weights on the same rows.
`host` is what a step takes of the main thread, `draw` what a batch takes to make; the first steps, in which things are
compiled, are timed apart.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
import torch
from workbench import real_sentences

FULL = {"layers": 6, "width": 384, "heads": 6, "length": 128, "batch_size": 1024}
TINY = {"layers": 2, "width": 64, "heads": 2, "length": 32, "batch_size": 16}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--tasks", action="append", choices=("mlm", "mlm,sop", "mlm,nsp", "structbert"))
    options.add_argument("--ways", default="before,now")
    options.add_argument("--tokenizer", default="builtin-base")
    options.add_argument("--text", type=Path, help="documents with blank lines between; else a real corpus, docstrings")
    options.add_argument("--steps", type=int, default=60, help="updates that are timed, after 6 that are not")
    options.add_argument("--batch-size", type=int)
    options.add_argument("--tiny", action="store_true")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    torch.set_float32_matmul_precision("high")
    with tempfile.TemporaryDirectory() as temporary:
        text = chosen.text or make_text(Path(temporary) / "text.txt", 2_000 if chosen.tiny else 60_000)
        for tasks in chosen.tasks or ["mlm", "mlm,sop"]:
            compare(tasks, text, chosen)


def make_text(file: Path, count: int) -> Path:
    """Documents of 25 sentences."""
    lines = real_sentences(count)
    documents = ("\n".join(lines[start : start + 25]) for start in range(0, len(lines), 25))
    file.write_text("\n\n".join(documents) + "\n", encoding="utf-8")
    return file


class Run:
    """The update of a real run, without its log and its evaluations."""

    def __init__(self, tasks: str, text: Path, chosen: argparse.Namespace, dropout: float) -> None:
        from isotrope.encoders.fresh import fresh_encoder
        from isotrope.encoders.loading import load
        from isotrope.encoders.modes import set_dropout
        from isotrope.training.loop import make_accelerator
        from isotrope.training.pretrain_settings import PretrainSettings
        from isotrope.training.pretrain_tasks import open_task
        from isotrope.training.updates import Updater

        shape: dict[str, Any] = {**(TINY if chosen.tiny else FULL)}
        shape["batch_size"] = chosen.batch_size or shape["batch_size"]
        settings = PretrainSettings(tasks=tasks, steps=1000, warmup_steps=20, dropout=dropout, **shape)
        self.accelerator = make_accelerator(settings.loop())
        body = {name: shape[name] for name in ("layers", "width", "heads")}
        encoder = fresh_encoder([], **body, tokenizer=load(chosen.tokenizer, device="cpu").tokenizer)
        task = open_task([text], encoder.to(self.accelerator.device), settings, self.accelerator)
        set_dropout(encoder.backbone, dropout)
        self.combined, self.feed, self.tokens = task.combined, task.feed, settings.batch_size * settings.length
        self.combined.to(self.accelerator.device).train()
        self.updater = Updater(self.combined, settings.loop(), settings.steps, (), self.accelerator)
        self.number = 0

    def step(self, source: Iterator[Any]) -> torch.Tensor:
        self.number += 1
        return self.updater.update(self.number - 1, source).loss


@contextmanager
def way(name: str) -> Iterator[None]:
    """padded: transformers' forward; eager, hashed: our layers as they are written, with torch's dropout or ours;
    compiled; now: compiled and recorded; graphs: what sentence tasks had before, all states from a graph."""
    from isotrope.encoders import compiled_layers, layer_parts, row_layers, unpadded
    from isotrope.encoders.speed import Speed, at_speed, forgetting_graphs

    def all_states(bare: Any, tokens: Any, places: torch.Tensor) -> torch.Tensor:
        return row_layers.picked(bare.states(tokens).flatten(0, 1), places)

    with forgetting_graphs(), ExitStack() as stack:
        if name == "padded":
            stack.enter_context(unpadded.with_padding())
        if name == "graphs":
            stack.enter_context(patch.object(unpadded.Unpadded, "states_at", all_states))
        if name == "hashed":
            stack.enter_context(patch.object(row_layers, "compiled_parts", compiled_layers.Parts))
            stack.enter_context(patch.object(layer_parts, "takes_kernel", lambda states: False))
        if name not in ("padded", "eager"):
            stack.enter_context(at_speed(Speed(compiled=True, graphs=name in ("now", "graphs"))))
        yield


def wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def compare(tasks: str, text: Path, chosen: argparse.Namespace) -> None:
    before = "padded" if tasks == "mlm" else "graphs"
    agree(tasks, text, chosen)
    for name in chosen.ways.split(","):
        with way(before if name == "before" else name):
            timed(tasks, name, Run(tasks, text, chosen, 0.1), chosen)


def agree(tasks: str, text: Path, chosen: argparse.Namespace) -> None:
    """Loss and gradient of one batch under the same masks: without dropout, transformers' forward and our layers; with
    it, our layers as they are written and compiled."""
    ours = [name for name in chosen.ways.split(",") if name != "before"]
    for dropout, names in ((0.0, ["padded", "eager"]), (0.1, ["hashed", *ours])):
        run, found = Run(tasks, text, chosen, dropout), []
        with closing(run.feed.batches(skip=0)) as source:
            _, batch = next(source)
        if tasks == "mlm":  # a compiled draw of masks would be another one
            run.combined.method.compiled = run.combined.method.token_losses
        for name in names:
            found.append(gradient_of(run, batch, name))
        loss, gradient = found[0]
        for name, (other, own) in zip(names[1:], found[1:], strict=True):
            cosine = torch.nn.functional.cosine_similarity(gradient, own, dim=0).item()
            ratio = (own.norm() / gradient.norm()).item()
            print(
                f"{tasks}, dropout {dropout}: loss {loss:.5f} {names[0]}, {other:.5f} {name}; "
                f"gradients: cosine {cosine:.6f}, ratio of their norms {ratio:.5f}"
                f"{'   THEY DIFFER' if abs(other - loss) > 0.01 or cosine < 0.99 else ''}"
            )


def gradient_of(run: Run, batch: Any, name: str) -> tuple[float, torch.Tensor]:
    from isotrope.training.step import compute_gradient

    run.combined.zero_grad(set_to_none=True)
    with way(name):
        outcome = compute_gradient(run.combined, batch, run.accelerator, (1, 2, 3))
    gradients = [weight.grad.flatten() for weight in run.combined.parameters() if weight.grad is not None]
    return outcome.loss.item(), torch.cat(gradients).double()


def timed(tasks: str, name: str, run: Run, chosen: argparse.Namespace) -> None:
    steps = 3 if chosen.tiny else chosen.steps
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    with closing(run.feed.batches(skip=0)) as source:
        start = time.perf_counter()
        losses = [run.step(source) for _ in range(6)]
        wait()
        first, start, busy = time.perf_counter() - start, time.perf_counter(), time.thread_time()
        losses += [run.step(source) for _ in range(steps)]
        host = time.thread_time() - busy
        wait()
        seconds = time.perf_counter() - start
        numbers = torch.stack(losses).tolist()
        memory = torch.cuda.max_memory_allocated() / 1e9 if torch.cuda.is_available() else 0.0
        print(
            f"{tasks} {name:6} {run.tokens * steps / seconds / 1e6:6.3f} million tokens a second, "
            f"{1e3 * seconds / steps:.1f} ms a step (host {1e3 * host / steps:.1f}, draw {draw(run):.1f}); "
            f"first 6 steps {first:.0f} s; {memory:.1f} GB"
        )
        shown = [numbers[place] for place in sorted({0, len(numbers) // 4, len(numbers) // 2, len(numbers) - 1})]
        tail = numbers[-20:]
        print(f"  losses {' '.join(f'{each:.4f}' for each in shown)}; mean of the last 20: {sum(tail) / len(tail):.4f}")
        if name == "now":
            profile(run, source)


def draw(run: Run) -> float:
    """Milliseconds in which one batch of pairs is made, while nothing else runs."""
    from isotrope.training.feeds import CorpusFeed

    if not isinstance(run.feed, CorpusFeed):
        return 0.0
    rows = next(run.feed.endless())
    start = time.perf_counter()
    for number in range(3):
        run.feed.make(number, rows)
    wait()
    return 1e3 * (time.perf_counter() - start) / 3


def profile(run: Run, source: Iterator[Any]) -> None:
    """The kernels that take most of three steps."""
    from torch.profiler import ProfilerActivity

    cuda = torch.cuda.is_available()
    with torch.profiler.profile(activities=[ProfilerActivity.CUDA if cuda else ProfilerActivity.CPU]) as watched:
        for _ in range(3):
            run.step(source)
        wait()
    events = watched.key_averages()
    times = {event.key: event.self_device_time_total if cuda else event.self_cpu_time_total for event in events}
    counts = {event.key: event.count for event in events}
    whole = sum(times.values())
    print(f"  kernels of a step: {whole / 3e3:.1f} ms in {sum(counts.values()) // 3} launches")
    for key in sorted(times, key=lambda key: -times[key])[:12]:
        print(f"  {times[key] / 3e3:8.2f} ms {counts[key] / 3:7.1f} × {key[:110]}")


if __name__ == "__main__":
    main()
