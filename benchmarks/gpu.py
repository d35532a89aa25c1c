"""What a GPU does in a second: steps of training and encoding, ours and sentence-transformers' in one process.

    python benchmarks/gpu.py step [--batch-size 64] [--profile]    one SimCSE update: ours before, ours, theirs
    python benchmarks/gpu.py encode [--model builtin]              sentences a second, and the cost of half precision
    python benchmarks/gpu.py host [--model builtin]                what the host does for a sentence; needs no GPU
    python benchmarks/gpu.py methods [--share 1/2] [--json FILE]   records a second of every method, before and after
    python benchmarks/gpu.py table FILE                            the methods' lines of such a file, as Markdown
    python benchmarks/gpu.py curves                                the loss as it is now, and in plain float32
    python benchmarks/gpu.py all                                   a short form of each: eight minutes (make bench-gpu)

`before` is the same code with padded rows and nothing compiled. Both sides have the same weights (BERT-base's shape,
random, unless --model names one), texts, length 64, bfloat16, fused AdamW, and take turns. Theirs is the step of its
trainer: its collator tokenizes each batch, its loss, clipping, the optimiser. Times are printed, never asserted.
--tiny is a rehearsal on a CPU: a step of four records in each way, from builtin-base.
"""

from __future__ import annotations

import argparse
import gzip
import lzma
import os
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
import numpy as np
import torch
from gpu_host import host
from gpu_methods import methods, table
from gpu_profile import say_profile
from gpu_runs import LENGTH, Trained, on_gpu, records, run, say, synchronize, ways
from workbench import real_sentences

BASE = {"layers": 12, "width": 768, "heads": 12, "max_length": 128}
CURVES = ("simcse", "simcse-supervised", "moco", "tsdae")


def main() -> int:
    chosen = asked()
    if chosen.what == "table":
        print(table(chosen.file))
        return 0
    if not (on_gpu() or chosen.tiny or chosen.what == "host"):
        raise SystemExit("No GPU is here; --tiny rehearses on a CPU.")
    warnings.simplefilter("ignore")
    whole = chosen.what == "all"
    sentences = read(chosen.text, chosen.sentences)
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = chosen.model
        if model is None and (whole or chosen.what in ("step", "encode")):
            model = str(make_base(sentences[:20_000], folder / "base", chosen.tiny))
        if chosen.what in ("step", "all"):
            for size in chosen.batch_size:
                steps(model, sentences, folder, size, chosen)
        if chosen.what in ("encode", "all"):
            encodes(model, sentences[: len(sentences) // 4] if whole else sentences, chosen)
            if whole:
                encodes("builtin", sentences, chosen)
        if chosen.what in ("host", "all"):
            host(chosen.model or "builtin", sentences, chosen)
        if chosen.what in ("methods", "all"):
            failed = methods(folder, sentences, chosen)
        if chosen.what in ("curves", "all"):
            names = CURVES[:1] if whole else chosen.only.split(",") if chosen.only else CURVES
            curves(names, folder, sentences, chosen)
    return int(failed > 0)


def asked() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("what", choices=("step", "encode", "host", "methods", "table", "curves", "all"))
    options.add_argument("file", type=Path, nargs="?", help="table: a file that --json wrote")
    options.add_argument("--batch-size", type=int, action="append")
    options.add_argument("--turns", type=int)
    options.add_argument("--steps", type=int, help="updates in a turn")
    options.add_argument("--sentences", type=int)
    options.add_argument("--text", type=Path, help="a sentence a line; else a real corpus, or docstrings")
    options.add_argument("--model", help="instead of BERT-base's shape with random weights")
    options.add_argument("--only", help="methods, separated by commas")
    options.add_argument("--share", default="1/1", help="methods: K/N, one of N parts")
    options.add_argument("--limit", type=float, default=25, help="methods: seconds after which no new way is begun")
    options.add_argument("--profile", action="store_true", help="step: the kernels of ten steps with graphs")
    options.add_argument("--alone", action="store_true", help="step: graphs only, without sentence-transformers")
    options.add_argument("--json", type=Path, help="add the results to this file, a line each")
    options.add_argument("--tiny", action="store_true", help="a rehearsal on a CPU")
    chosen = options.parse_args()
    if chosen.what == "table" and chosen.file is None:
        options.error("table needs a FILE that --json wrote.")
    short = (1, 1, 400) if chosen.tiny else (3, 20, 100_000) if chosen.what == "all" else (5, 40, 200_000)
    for name, usual in zip(("turns", "steps", "sentences"), short, strict=True):
        if getattr(chosen, name) is None:
            setattr(chosen, name, usual)
    chosen.updates = 5 if chosen.tiny else 150 if chosen.what == "all" else 300
    chosen.batch_size = chosen.batch_size or ([4] if chosen.tiny else [64, 512])
    return chosen


def read(file: Path | None, count: int) -> list[str]:
    if file is None:
        return real_sentences(count)
    opened: Callable[..., Any] = {".gz": gzip.open, ".xz": lzma.open}.get(file.suffix, open)
    with opened(file, "rt", encoding="utf-8") as lines:
        found = dict.fromkeys(line.strip() for line in lines if 15 <= len(line) <= 400)
    return list(found)[:count]


def make_base(sentences: list[str], folder: Path, tiny: bool) -> Path:
    from isotrope.encoders.fresh import fresh_encoder
    from isotrope.encoders.loading import load

    (load("builtin-base") if tiny else fresh_encoder(sentences, vocabulary=30_522, **BASE)).save(folder)
    return folder


def steps(model: str, sentences: list[str], folder: Path, size: int, chosen: argparse.Namespace) -> None:
    """Records a second of each way, and the share of the GPU's matrix rate that real tokens take."""
    data = records("sentences", sentences, folder)
    trained = Trained("simcse", data, model, folder, batch_size=size, learning_rate=1e-5)
    contestants: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        name: (trained.step, way) for name, way in ways(*(["graphs"] if chosen.alone else [])).items()
    }
    if not chosen.alone:
        contestants["sentence-transformers"] = (theirs(model, sentences, size), nullcontext)
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    memory: dict[str, float] = {}
    first: dict[str, float] = {}
    for name, (step, way) in contestants.items():
        before = free_memory()
        with way():
            first[name] = run(step, 1)
            run(step, 1 if chosen.tiny else 14)
        memory[name] = (before - free_memory()) / 1e9
    for _ in range(chosen.turns):
        for name, (step, way) in contestants.items():
            with way():
                seconds[name].append(run(step, chosen.steps))
    if chosen.profile:
        with ways()["graphs"]():
            say_profile(trained.step, f"SimCSE step of {size}", chosen)
    trained.close()
    tokens = float(np.mean(trained_lengths(model, sentences[:5000]))) * 2
    flops = 6 * tokens * matrices(model)
    for name, times in seconds.items():
        rate = size * chosen.steps / statistics.median(times)
        ratios = [b / a for a, b in zip(times, seconds.get("sentence-transformers", []), strict=False)]
        say(
            chosen,
            task=f"SimCSE step of {size}",
            way=name,
            records_per_second=round(rate),
            ratio=round(statistics.median(ratios), 2) if ratios else None,
            teraflops=round(rate * flops / 1e12, 1),
            more_memory_gb=round(memory[name], 2),
            first_step_s=round(first[name], 1),
        )


def free_memory() -> int:
    if not on_gpu():
        return 0
    torch.cuda.empty_cache()
    return torch.cuda.mem_get_info()[0]


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

    encoder = SentenceTransformer(model, device=device()).train()
    encoder.max_seq_length = LENGTH
    criterion = MultipleNegativesRankingLoss(encoder, scale=20.0)
    collator = SentenceTransformerDataCollator(preprocess_fn=encoder.preprocess)
    optimiser = torch.optim.AdamW(encoder.parameters(), lr=1e-5, fused=on_gpu())

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
                key.removeprefix(f"{name}_"): value.to(encoder.device, non_blocking=True)
                if torch.is_tensor(value)
                else value
                for key, value in batch.items()
                if key.startswith(f"{name}_")
            }
            for name in ("anchor", "positive")
        ]
        with torch.autocast("cuda", torch.bfloat16, enabled=on_gpu()):
            loss = criterion(columns, None)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(encoder.parameters(), 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        return loss.detach()

    return step


def encodes(model: str, sentences: list[str], chosen: argparse.Namespace) -> None:
    """Sentences a second; the ratio of each turn. The slow ones are given a quarter of the sentences."""
    from sentence_transformers import SentenceTransformer

    import isotrope
    from isotrope.encoders.unpadded import with_padding

    ours = isotrope.load(model, device=device())
    with tempfile.TemporaryDirectory() as temporary:
        ours.save(temporary)
        other = SentenceTransformer(temporary, device=device())
        half = SentenceTransformer(temporary, device=device()).bfloat16()
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
    rates: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(min(chosen.turns, 3)):
        for name, encode in contestants.items():
            texts = sentences if name.startswith("ours") else sentences[: len(sentences) // 4]
            synchronize()
            start = time.perf_counter()
            encode(texts)
            rates[name].append(len(texts) / (time.perf_counter() - start))
    for name, found in rates.items():
        against = "sentence-transformers, bfloat16" if name == "ours, half" else "sentence-transformers"
        cosines = (vectors[name] * exact).sum(1) / np.linalg.norm(vectors[name], axis=1) / np.linalg.norm(exact, axis=1)
        say(
            chosen,
            task=f"encode {len(sentences):,} sentences",
            model=Path(model).name,
            way=name,
            sentences_per_second=round(statistics.median(found)),
            first_turn=round(found[0]),  # later ones have met all words
            ratio=round(statistics.median(a / b for a, b in zip(found, rates[against], strict=True)), 2),
            least_cosine=float(cosines.min()),
            mean_cosine=float(cosines.mean()),
        )


def padded(encoder: Any, texts: list[str], with_padding: Callable[[], Any]) -> Any:
    with with_padding():
        return encoder.encode(texts)


def device() -> str:
    return "cuda" if on_gpu() else "cpu"


def curves(names: Sequence[str], folder: Path, sentences: list[str], chosen: argparse.Namespace) -> None:
    """The mean loss of each fifth of the updates: as it is now, and in float32 with padding, three seeds each."""
    from isotrope.encoders.speed import forgetting_graphs
    from isotrope.methods.frame.method_registry import find

    for name in names:
        data = records(find(name).card.needs, sentences, folder)
        for way, precision in (("graphs", "auto"), ("before", "float32")):
            found = []
            for seed in (1, 2, 3):
                own = {"precision": precision, "seed": seed, "learning_rate": 1e-4}
                own["batch_size"] = 4 if chosen.tiny else 128
                trained = Trained(name, data, "builtin-base", folder, **own)
                with forgetting_graphs(), ways()[way]():
                    losses = torch.stack([trained.step() for _ in range(chosen.updates)])
                trained.close()
                found.append(losses.view(5, -1).mean(1).tolist())
            mean, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
            say(
                chosen,
                task=f"loss of {chosen.updates} updates",
                method=name,
                way=f"{way}, {precision}",
                mean=[round(float(value), 4) for value in mean],
                spread=[round(float(value), 4) for value in spread],
            )


if __name__ == "__main__":
    sys.exit(main())
