"""One SimCSE step (tokenize, two dropout views, loss, backward) against sentence-transformers doing the same work.

    python benchmarks/train_step.py [--quick] [--json] [--threads N] [--batch-size 64] [--model builtin-base]

Theirs: MultipleNegativesRankingLoss, scale 20, the sentence in both columns, tokenized by its collator. Ours tokenizes
its batch inside the step too, though the training loop does so once for a whole corpus. No optimiser on either side: it
is the same one.
"""

from __future__ import annotations

import argparse
import tempfile
from itertools import cycle
from pathlib import Path

import numpy as np
from workbench import Contest, make_model, print_result, real_sentences, resident_growth, use_threads


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true", help="3 turns instead of 15")
    options.add_argument("--json", action="store_true", help="for machines")
    options.add_argument("--batch-size", type=int, default=64)
    options.add_argument("--model", help="instead of a model of the same size with random weights")
    options.add_argument("--threads", type=int, help="of torch; 1 is the steadiest where others use the machine")
    options.add_argument("--memory-of", choices=CONTESTANTS, help=argparse.SUPPRESS)  # how this script calls itself
    options.add_argument("--folder", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    use_threads(chosen.threads)
    size = chosen.batch_size
    sentences = real_sentences(max(20 * size, 1500))
    if chosen.memory_of:
        step = CONTESTANTS[chosen.memory_of](chosen.folder)
        step(sentences[:2])  # gradients are there from now on, as in the middle of a training
        print(resident_growth(lambda: step(sentences[:size])))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = str(Path(temporary) / "model")
        (open_model(chosen.model) if chosen.model else make_model(sentences)).save(folder)
        steps = {name: load(folder) for name, load in CONTESTANTS.items()}
        batches = {name: cycle([sentences[i : i + size] for i in range(0, 20 * size, size)]) for name in steps}
        losses = {
            f"mean loss, {name}": float(np.mean([step(sentences[:size]) for _ in range(3)]))
            for name, step in steps.items()
        }
        contest = Contest({name: lambda name=name: steps[name](next(batches[name])) for name in steps})
        result = contest.run(turns=3 if chosen.quick else 15)
        result.memory = {
            name: contest.memory_of(__file__, name, folder, chosen.quick, "--batch-size", str(size))
            for name in CONTESTANTS
        }
    print_result(result, f"one SimCSE step of {size}", size, "sentences/s", losses, chosen.json)


def open_model(name: str):
    from isotrope.encoders.loading import load

    return load(name, device="cpu")


def isotrope(folder: str):
    from accelerate import Accelerator

    from isotrope.encoders.loading import load
    from isotrope.methods.frame.batch import Batch
    from isotrope.methods.frame.combined import Combined
    from isotrope.methods.simcse import SimCSE
    from isotrope.training.float32_products import fast_products
    from isotrope.training.step import compute_gradient

    accelerator = Accelerator(cpu=True)
    method = SimCSE(SimCSE.Settings(temperature=0.05, head="none"), load(folder, device="cpu"))
    combined = Combined(method).train()
    numbers = iter(range(1 << 30))

    def step(sentences: list[str]) -> float:
        method.zero_grad(set_to_none=False)
        flat, lengths = method.encoder.text_tokenizer.flat(sentences)
        view = method.frame(np.split(flat, np.cumsum(lengths)[:-1]))
        batch = Batch({"first": view, "second": view}, len(sentences), 0)
        with fast_products(combined, accelerator.device):  # as the training loop does
            return float(compute_gradient(combined, batch, accelerator, (0, next(numbers))).loss)

    return step


def sentence_transformers(folder: str):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    model = SentenceTransformer(folder, device="cpu").train()
    criterion = MultipleNegativesRankingLoss(model, scale=20.0)
    collator = SentenceTransformerDataCollator(preprocess_fn=model.preprocess)

    def step(sentences: list[str]) -> float:
        model.zero_grad(set_to_none=False)
        batch = collator([{"anchor": sentence, "positive": sentence} for sentence in sentences])
        columns = [
            {key.removeprefix(f"{name}_"): value for key, value in batch.items() if key.startswith(f"{name}_")}
            for name in ("anchor", "positive")
        ]
        loss = criterion(columns, None)
        loss.backward()
        return float(loss.detach())

    return step


CONTESTANTS = {"isotrope": isotrope, "sentence-transformers": sentence_transformers}

if __name__ == "__main__":
    main()
