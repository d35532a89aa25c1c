"""How cost grows: processor time and memory against sentences, tokens, candidates and width, with fitted exponents.

    python benchmarks/growth.py [--quick] [--json FILE] [--svg docs/assets/growth.svg]

cost ∝ size^exponent, by least squares on logarithms: 1 is linear, 0 is flat. Time is processor time of one thread, the
least of two runs, so that others on the machine disturb it little. Memory is what the resident set rises by at its
highest, above what is there before the work begins.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
from workbench import real_sentences, resident_growth, use_threads

Work = Callable[[], Any]
FLOOR = 1.0  # MB: less than this is noise


@dataclass
class Curve:
    """One kind of work at several sizes of one axis."""

    work: str
    axis: str
    sizes: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    megabytes: list[float] = field(default_factory=list)

    def exponent(self, costs: list[float], least: float) -> float:
        return float(np.polyfit(np.log(self.sizes), np.log(np.maximum(costs, least)), 1)[0])

    def facts(self) -> dict[str, Any]:
        return {
            **vars(self),
            "time_exponent": round(self.exponent(self.seconds, 1e-6), 2),
            "memory_exponent": round(self.exponent(self.megabytes, FLOOR), 2),
        }


def measured(curve: Curve, size: int, work: Work, turns: int) -> None:
    if not curve.sizes:
        work()  # what is made once: buffers, thread pools
    spent, grown = [], []
    for _ in range(turns):
        begun = time.process_time()
        grown.append(resident_growth(work) / 1e6)
        spent.append(time.process_time() - begun)
    curve.sizes.append(size)
    curve.seconds.append(min(spent))
    curve.megabytes.append(max(grown))


def encode_file(folder: Path, name: str, texts: list[str], quick: bool) -> Iterator[tuple[int, Work]]:
    import isotrope

    encoder = isotrope.load(name, device="cpu")
    for size in (1000, 2000, 4000) if quick else (2048, 4096, 8192, 16_384, 32_768):
        count = size if name == "builtin-static" else size // 32
        lines = [texts[number % len(texts)] for number in range(count)]
        file = folder / f"{name}-{count}.txt"
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
        block = 2048 if name == "builtin-static" else 64
        yield count, lambda file=file, block=block: isotrope.encode(encoder, file, folder / "v.npy", shard_size=block)


def encode_tokens(texts: list[str], quick: bool) -> Iterator[tuple[int, Work]]:
    import isotrope

    encoder = isotrope.load("builtin", device="cpu")
    words = " ".join(texts).split()
    for tokens in (16, 32, 64) if quick else (16, 32, 64, 128):
        lines = [" ".join(words[start : start + 2 * tokens]) for start in range(0, 16 * 97, 97)]
        cut = [encoder.tokenizer.decode(encoder.tokenizer(line)["input_ids"][1 : tokens - 3]) for line in lines]
        yield tokens, lambda cut=cut: encoder.encode(cut)


def encode_width(texts: list[str], quick: bool) -> Iterator[tuple[int, Work]]:
    from isotrope.encoders.fresh import fresh_encoder

    for width in (128, 256) if quick else (128, 256, 512, 768):
        encoder = fresh_encoder(texts[:2000], vocabulary=2000, layers=4, width=width, heads=width // 64)
        yield width, lambda encoder=encoder: encoder.encode(texts[:16])


def contrast_of(axis: str, quick: bool) -> Iterator[tuple[int, Work]]:
    import torch

    from isotrope.objectives import chunked_contrast

    candidates = (4096, 8192) if quick else (8192, 16_384, 32_768, 65_536)
    widths = (64, 128) if quick else (96, 192, 384, 768)
    for size in candidates if axis == "candidates" else widths:
        count, width = (size, 384) if axis == "candidates" else (16_384, size)
        anchors = torch.randn(128, width, requires_grad=True)
        pool = torch.randn(count, width, requires_grad=True)
        targets = torch.arange(128)
        yield size, lambda a=anchors, p=pool, t=targets: chunked_contrast(a, p, t).backward()


def nearest(quick: bool) -> Iterator[tuple[int, Work]]:
    import torch

    from isotrope.measures.nearest_rows import top_rows

    for count in (20_000, 40_000) if quick else (65_536, 131_072, 262_144, 524_288):
        vectors, queries = torch.randn(count, 256), torch.randn(8, 256)
        yield count, lambda v=vectors, q=queries: top_rows(q, v, 10)


def train_step(texts: list[str], quick: bool) -> Iterator[tuple[int, Work]]:
    import torch

    import isotrope
    from isotrope.objectives import info_nce

    encoder = isotrope.load("builtin-base", device="cpu").train()
    for size in (4, 8) if quick else (4, 8, 16, 32):
        tokens = encoder.tokenize(texts[:size], 64)

        def step(tokens: Any = tokens) -> None:
            first, second = encoder.embed(tokens, tokens)
            info_nce(first, second).backward()
            encoder.zero_grad()

        torch.manual_seed(0)
        yield size, step


def curves(folder: Path, quick: bool, only: str) -> Iterator[Curve]:
    texts = real_sentences(3000)
    kinds: list[tuple[str, str, Iterator[tuple[int, Work]]]] = [
        ("encode a file, builtin", "sentences", encode_file(folder, "builtin", texts, quick)),
        ("encode a file, builtin-static", "sentences", encode_file(folder, "builtin-static", texts, quick)),
        ("encode 16 texts, builtin", "tokens a text", encode_tokens(texts, quick)),
        ("encode 16 texts, four layers", "width", encode_width(texts, quick)),
        ("SimCSE step, builtin-base", "records", train_step(texts, quick)),
        ("chunked contrast, 128 anchors, width 384", "candidates", contrast_of("candidates", quick)),
        ("chunked contrast, 128 × 16,384", "width", contrast_of("width", quick)),
        ("nearest of 8 queries, width 256", "candidates", nearest(quick)),
    ]
    for work, axis, points in kinds:
        if only not in f"{work} {axis}":
            continue
        curve = Curve(work, axis)
        for size, task in points:
            measured(curve, size, task, 1 if quick else 2)
        yield curve


def draw(found: list[Curve], place: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update({"svg.hashsalt": "isotrope", "svg.fonttype": "none", "font.size": 8})
    from matplotlib import pyplot

    columns = max((len(found) + 1) // 2, 2)
    figure, axes = pyplot.subplots(2, columns, figsize=(2.9 * columns, 5.2), layout="constrained")
    for axis, curve in zip(axes.flat, found, strict=False):
        facts = curve.facts()
        axis.loglog(curve.sizes, curve.seconds, "o-", color="#3949ab", label=f"s, exponent {facts['time_exponent']}")
        other = axis.twinx()
        other.loglog(curve.sizes, np.maximum(curve.megabytes, FLOOR), "s--", color="#c2185b")
        other.set_ylim(FLOOR / 2, 2000)
        axis.plot([], [], "s--", color="#c2185b", label=f"MB, exponent {facts['memory_exponent']}")
        axis.set(title=curve.work, xlabel=curve.axis)
        axis.title.set_fontsize(8)
        axis.legend(fontsize=7, loc="upper left")
        axis.set_ylim(min(curve.seconds) / 2, max(curve.seconds) * 8)
        axis.minorticks_off()
        axis.set_xticks(curve.sizes, [f"{size:,}" for size in curve.sizes], fontsize=6)
    figure.savefig(place, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--svg", type=Path)
    parser.add_argument("--only", default="", help="work and axis that hold these words")
    parser.add_argument("--drawn", type=Path, nargs="*", help="draw what --json wrote earlier, and measure nothing")
    given = parser.parse_args()
    if given.drawn:
        read = [one for file in given.drawn for one in json.loads(file.read_text(encoding="utf-8"))]
        names = [field.name for field in fields(Curve)]
        draw([Curve(**{name: one[name] for name in names}) for one in read], given.svg)
        return
    use_threads(1)
    found = []
    print("| work | against | sizes | processor seconds | exponent | MB | exponent |\n|---|---|---|---|---:|---|---:|")
    with tempfile.TemporaryDirectory() as place:
        for curve in curves(Path(place), given.quick, given.only):
            found.append(curve)
            facts = curve.facts()
            cells = [
                curve.work,
                curve.axis,
                " · ".join(f"{size:,}" for size in curve.sizes),
                " · ".join(f"{spent:.3g}" for spent in curve.seconds),
                f"{facts['time_exponent']:.2f}",
                " · ".join(f"{size:.0f}" for size in curve.megabytes),
                f"{facts['memory_exponent']:.2f}",
            ]
            print(f"| {' | '.join(cells)} |", flush=True)
    if given.json:
        given.json.write_text(json.dumps([curve.facts() for curve in found], indent=2) + "\n", encoding="utf-8")
    if given.svg:
        draw(found, given.svg)


if __name__ == "__main__":
    main()
