"""The space of an encoder before and after runs, side by side: the last weights of each run, whichever step it kept; or a model.

    python benchmarks/geometry_claims.py --data-dir DATA [--splits dev] [--model builtin-base] [RUN_OR_MODEL …]

The table is for docs/notes/geometry.md: the base with cls and mean pooling, then each run's last checkpoint, on the pairs of STS-B;
edits is the Spearman of edit distance and cosine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from safetensors.torch import load_file

import isotrope
from isotrope.evaluation.geometry_suite import describe_scored, describe_vectors
from isotrope.evaluation.sts import find_task, read_pairs
from isotrope.training.checkpoints import RunFolder


def last(run: Path) -> isotrope.Encoder:
    """The encoder as the run's last step left it; its model/ holds the step that was chosen."""
    encoder = isotrope.load(run / "model")
    weights = load_file(RunFolder(run).last() / "weights.safetensors")
    encoder.load_state_dict({name: weights[f"encoder.{name}"] for name in encoder.state_dict()})
    return encoder


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("runs", nargs="*", type=Path)
    options.add_argument("--data-dir", type=Path, required=True)
    options.add_argument("--splits", default="train,dev,test")
    options.add_argument("--model", default="builtin-base")
    chosen = options.parse_args()
    first, second, gold = [], [], []
    for split in chosen.splits.split(","):
        left, right, scores, _ = read_pairs(find_task(chosen.data_dir / "sts", f"stsb.{split}"))
        first, second, gold = [*first, *left], [*second, *right], [*gold, *scores.tolist()]
    texts = list(dict.fromkeys([*first, *second]))
    models = {
        f"{chosen.model}, {pooling}": lambda pooling=pooling: isotrope.load(chosen.model, pooling=pooling) for pooling in ("cls", "mean")
    }
    for given in chosen.runs:
        is_run = (given / "run.json").is_file()
        label = f"{given.name}, step {RunFolder(given).history()[-1]['step']}" if is_run else given.name
        models[label] = (lambda given=given: last(given)) if is_run else (lambda given=given: isotrope.load(given))
    print("| model | alignment | uniformity | Spearman | mean cosine | effective rank | σ₂, σ₁₀, σ₁₀₀ | top 1, 10 | hubness | edits |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, make in models.items():
        vectors = make().encode(texts)
        space, pairs = describe_vectors(vectors), describe_scored(vectors, texts, first, second, gold)
        spectrum = ", ".join(f"{space['spectrum'][place - 1]:.3f}" for place in (2, 10, 100))
        shares = ", ".join(f"{100 * space['top_shares'][count]:.1f} %" for count in ("1", "10"))
        print(
            f"| {name} | {pairs['alignment']:.3f} | {pairs['uniformity']:.3f} | {pairs['spearman']:.2f} | {space['mean_cosine']:.3f} "
            f"| {space['effective_rank']:.1f} | {spectrum} | {shares} | {space['hubness']:.2f} | {pairs['lexical']['edit_cosine']:.2f} |",
            flush=True,
        )
    print(f"\nSTS-B {chosen.splits}: {len(gold):,} pairs, {len(texts):,} sentences; edits and gold {pairs['lexical']['edit_gold']:.2f}")


if __name__ == "__main__":
    main()
