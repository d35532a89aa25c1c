"""What a GPU does in a second: steps of training and encoding, ours and sentence-transformers' in one process.

    python benchmarks/gpu.py step [--batch-size 64] [--turns 5]    one SimCSE update: ours before, ours, theirs
    python benchmarks/gpu.py encode [--model builtin]              sentences a second, and the cost of half precision
    python benchmarks/gpu.py methods                               records a second of every method, before and after
    python benchmarks/gpu.py curves                                the loss as it is now, beside plain float32
    python benchmarks/gpu.py all                                   all of it (make bench-gpu)

`before` is the same code with padded rows and nothing compiled. Both sides have the same weights (BERT-base's shape,
random, unless --model names one), texts, length 64, bfloat16, fused AdamW, and take turns. Theirs is the step of its
trainer: its collator tokenizes each batch, its loss, clipping, the optimiser. Times are printed, never asserted.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
import numpy as np
import torch
from workbench import real_sentences

LENGTH = 64
BASE = {"layers": 12, "width": 768, "heads": 12, "max_length": 128}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("what", choices=("step", "encode", "methods", "curves", "all"))
    options.add_argument("--batch-size", type=int, action="append")
    options.add_argument("--turns", type=int, default=5)
    options.add_argument("--steps", type=int, default=40, help="updates in a turn")
    options.add_argument("--sentences", type=int, default=200_000)
    options.add_argument("--text", type=Path, help="a sentence a line; else a real corpus, or docstrings")
    options.add_argument("--model", help="instead of BERT-base's shape with random weights")
    options.add_argument("--only", help="methods, separated by commas")
    options.add_argument("--json", type=Path, help="add the results to this file, a line each")
    chosen = options.parse_args()
    warnings.simplefilter("ignore")
    sentences = read(chosen.text, chosen.sentences)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = chosen.model or str(make_base(sentences[:20_000], folder / "base"))
        (folder / "text.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
        if chosen.what in ("step", "all"):
            for size in chosen.batch_size or [64, 512]:
                steps(model, sentences, folder, size, chosen)
        if chosen.what in ("encode", "all"):
            encodes(model, sentences, chosen)
            if chosen.what == "all":
                encodes("builtin", sentences, chosen)
        if chosen.what in ("methods", "all"):
            methods(folder, sentences, chosen)
        if chosen.what in ("curves", "all"):
            curves(folder, sentences, chosen)


def read(file: Path | None, count: int) -> list[str]:
    if file is None:
        return real_sentences(count)
    with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8") as lines:
        found = dict.fromkeys(line.strip() for line in lines if 15 <= len(line) <= 400)
    return list(found)[:count]


def make_base(sentences: list[str], folder: Path) -> Path:
    from isotrope.encoders.fresh import fresh_encoder

    fresh_encoder(sentences, vocabulary=30_522, **BASE).save(folder)
    return folder


def say(chosen: argparse.Namespace, **line: Any) -> None:
    print(json.dumps(line), flush=True)
    if chosen.json:
        with chosen.json.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


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


def ways() -> dict[str, Callable[[], Any]]:
    from isotrope.encoders.speed import Speed, at_speed
    from isotrope.encoders.unpadded import with_padding

    return {
        "before": with_padding,
        "plain": nullcontext,
        "compiled": lambda: at_speed(Speed(compiled=True)),
        "graphs": lambda: at_speed(Speed(compiled=True, graphs=True)),
    }


def run(step: Callable[[], Any], count: int) -> float:
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(count):
        step()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def steps(model: str, sentences: list[str], folder: Path, size: int, chosen: argparse.Namespace) -> None:
    """Records a second of each way, and the share of the GPU's matrix rate that real tokens take."""
    trained = Trained("simcse", folder / "text.txt", model, folder, batch_size=size, learning_rate=1e-5)
    contestants: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        name: (trained.step, way) for name, way in ways().items()
    }
    contestants["sentence-transformers"] = (theirs(model, sentences, size), nullcontext)
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    memory: dict[str, float] = {}
    first: dict[str, float] = {}
    for name, (step, way) in contestants.items():
        torch.cuda.empty_cache()
        before = torch.cuda.mem_get_info()[0]
        with way():
            first[name] = run(step, 1)
            run(step, 14)
        memory[name] = (before - torch.cuda.mem_get_info()[0]) / 1e9
    for _ in range(chosen.turns):
        for name, (step, way) in contestants.items():
            with way():
                seconds[name].append(run(step, chosen.steps))
    trained.close()
    tokens = float(np.mean(trained_lengths(model, sentences[:5000]))) * 2
    flops = 6 * tokens * matrices(model)
    for name, times in seconds.items():
        rate = size * chosen.steps / statistics.median(times)
        ratio = statistics.median(b / a for a, b in zip(times, seconds["sentence-transformers"], strict=True))
        say(
            chosen,
            task=f"SimCSE step of {size}",
            way=name,
            records_per_second=round(rate),
            ratio=round(ratio, 2),
            teraflops=round(rate * flops / 1e12, 1),
            more_memory_gb=round(memory[name], 2),
            first_step_s=round(first[name], 1),
        )


def trained_lengths(model: str, sentences: list[str]) -> Any:
    import isotrope

    tokenizer = isotrope.load(model, device="cpu").text_tokenizer
    lengths = tokenizer.flat(sentences)[1] + len(tokenizer.start) + len(tokenizer.suffix)
    return np.minimum(lengths, LENGTH)


def matrices(model: str) -> int:
    """Weights of the layers: what a token is multiplied with."""
    import isotrope

    return sum(p.numel() for p in isotrope.load(model, device="cpu").backbone.encoder.parameters())


def theirs(model: str, sentences: list[str], size: int) -> Callable[[], Any]:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    encoder = SentenceTransformer(model, device="cuda").train()
    encoder.max_seq_length = LENGTH
    criterion = MultipleNegativesRankingLoss(encoder, scale=20.0)
    collator = SentenceTransformerDataCollator(preprocess_fn=encoder.preprocess)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=1e-5, fused=True)

    def batches() -> Iterator[list[str]]:
        while True:
            for start in range(0, len(sentences) - size, size):
                yield sentences[start : start + size]

    source = batches()

    def step() -> torch.Tensor:
        rows = next(source)
        batch = collator([{"anchor": sentence, "positive": sentence} for sentence in rows])
        columns = [
            {
                key.removeprefix(f"{name}_"): value.to("cuda", non_blocking=True) if torch.is_tensor(value) else value
                for key, value in batch.items()
                if key.startswith(f"{name}_")
            }
            for name in ("anchor", "positive")
        ]
        with torch.autocast("cuda", torch.bfloat16):
            loss = criterion(columns, None)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def encodes(model: str, sentences: list[str], chosen: argparse.Namespace) -> None:
    """Sentences a second; the ratio of each turn."""
    from sentence_transformers import SentenceTransformer

    import isotrope
    from isotrope.encoders.unpadded import with_padding

    ours = isotrope.load(model, device="cuda")
    with tempfile.TemporaryDirectory() as temporary:
        ours.save(temporary)
        other = SentenceTransformer(temporary, device="cuda")
        half = SentenceTransformer(temporary, device="cuda").bfloat16()
    contestants: dict[str, Callable[[list[str]], Any]] = {
        "sentence-transformers": lambda texts: other.encode(texts, batch_size=256),
        "sentence-transformers, bfloat16": lambda texts: (
            half.encode(texts, batch_size=256, convert_to_tensor=True).float().cpu().numpy()
        ),
        "before": lambda texts: padded(ours, texts, with_padding),
        "ours": ours.encode,
        "ours, half": lambda texts: ours.encode(texts, half=True),
    }
    vectors = {name: encode(sentences[:2000]) for name, encode in contestants.items()}
    exact = vectors["sentence-transformers"]
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(min(chosen.turns, 3)):
        for name, encode in contestants.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            encode(sentences)
            seconds[name].append(time.perf_counter() - start)
    for name, times in seconds.items():
        against = "sentence-transformers, bfloat16" if name == "ours, half" else "sentence-transformers"
        cosines = (vectors[name] * exact).sum(1) / np.linalg.norm(vectors[name], axis=1) / np.linalg.norm(exact, axis=1)
        say(
            chosen,
            task=f"encode {len(sentences):,} sentences",
            model=Path(model).name,
            way=name,
            sentences_per_second=round(len(sentences) / statistics.median(times)),
            ratio=round(statistics.median(b / a for a, b in zip(times, seconds[against], strict=True)), 2),
            least_cosine=float(cosines.min()),
            mean_cosine=float(cosines.mean()),
        )


def padded(encoder: Any, texts: list[str], with_padding: Callable[[], Any]) -> Any:
    with with_padding():
        return encoder.encode(texts)


def methods(folder: Path, sentences: list[str], chosen: argparse.Namespace) -> None:
    """Every method that trains a transformer on text, from builtin-base, batches of 128."""
    from isotrope.methods.frame.from_scratch import FromScratch
    from isotrope.methods.frame.method_registry import find, registry

    asked = chosen.only.split(",") if chosen.only else sorted(registry())
    for name in asked:
        try:
            if issubclass(find(name), FromScratch):
                continue
            trained = Trained(name, records(name, sentences, folder), "builtin-base", folder, batch_size=128)
            rates = {}
            for way, entered in ways().items():
                with entered():
                    run(trained.step, 6)
                    rates[way] = round(128 * 20 / run(trained.step, 20))
            trained.close()
            gain = round(max(rates.values()) / rates["before"], 2)
            say(chosen, task="methods", method=name, records_per_second=rates, gain=gain)
        except Exception as error:  # the others go on
            say(chosen, task="methods", method=name, failed=f"{type(error).__name__}: {error}"[:300])


def records(method: str, sentences: list[str], folder: Path) -> Path:
    """Records of the kind that a method takes, made of the sentences."""
    from isotrope.methods.frame.method_registry import find

    kind = find(method).card.needs
    file = folder / f"{kind}.{'txt' if kind in ('sentences', 'documents') else 'tsv'}"
    if file.exists():
        return file
    used = [sentence.replace("\t", " ") for sentence in sentences[:40_000]]
    rows = {
        "sentences": lambda: used,
        "documents": lambda: [line for i, line in enumerate(used) for line in ([line] if i % 8 else ["", line])],
        "pairs": lambda: ["first\tsecond", *(f"{a}\t{b}" for a, b in zip(used[::2], used[1::2], strict=True))],
        "triples": lambda: [
            "anchor\tpositive\tnegative",
            *(f"{a}\t{b}\t{c}" for a, b, c in zip(used[::3], used[1::3], used[2::3], strict=False)),
        ],
        "scored-pairs": lambda: [
            "first\tsecond\tscore",
            *(f"{a}\t{b}\t{i % 6}" for i, (a, b) in enumerate(zip(used[::2], used[1::2], strict=True))),
        ],
        "labelled": lambda: ["label\tsentence", *(f"{i % 6}\t{line}" for i, line in enumerate(used))],
        "labelled-pairs": lambda: [
            "label\tfirst\tsecond",
            *(f"{i % 3}\t{a}\t{b}" for i, (a, b) in enumerate(zip(used[::2], used[1::2], strict=True))),
        ],
    }
    file.write_text("\n".join(rows[kind]()) + "\n", encoding="utf-8")
    return file


def curves(folder: Path, sentences: list[str], chosen: argparse.Namespace) -> None:
    """The mean loss of each fifth of 300 updates: as it is now, and in float32 with padding, three seeds each."""
    for name in chosen.only.split(",") if chosen.only else ("simcse", "simcse-supervised", "moco", "tsdae"):
        for way, precision in (("graphs", "bfloat16"), ("before", "float32")):
            found = []
            for seed in (1, 2, 3):
                own = {"batch_size": 128, "precision": precision, "seed": seed, "learning_rate": 1e-4}
                trained = Trained(name, records(name, sentences, folder), "builtin-base", folder, **own)
                with ways()[way]():
                    losses = torch.stack([trained.step() for _ in range(300)])
                trained.close()
                found.append(losses.view(5, 60).mean(1).tolist())
            mean, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
            say(
                chosen,
                task="loss curve",
                method=name,
                way=f"{way}, {precision}",
                mean=[round(float(value), 4) for value in mean],
                spread=[round(float(value), 4) for value in spread],
            )


if __name__ == "__main__":
    main()
