"""The space of an encoder before and after runs, side by side: the last weights of each run, whichever step it kept; or
a model.

    python benchmarks/geometry_claims.py --data-dir DATA [--splits dev] [--model builtin-base] [RUN_OR_MODEL …]

The table is for docs/notes/geometry.md: the base with cls and mean pooling, then each run's last checkpoint, on the
pairs of STS-B; edits is the Spearman of edit distance and cosine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from safetensors.torch import load_file

import isotrope
from isotrope.evaluation.benchmark_files import find_task
from isotrope.evaluation.geometry_description import describe_vectors
from isotrope.evaluation.geometry_pairs import describe_scored
from isotrope.evaluation.scored_pairs import joined, read_pairs
from isotrope.training.run_folder import RunFolder

COLUMNS = (
    "model",
    "alignment",
    "uniformity",
    "Spearman",
    "mean cosine",
    "effective rank",
    "σ₂, σ₁₀, σ₁₀₀",
    "top 1, 10",
    "hubness",
    "edits",
)


def last(run: Path) -> isotrope.Encoder:
    """The encoder as the run's last step left it; its model/ holds the step that was chosen."""
    encoder = isotrope.load(run / "model")
    weights = load_file(RunFolder(run).last() / "weights.safetensors")
    encoder.load_state_dict({name: weights[f"method.encoder.{name}"] for name in encoder.state_dict()})
    return encoder


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("runs", nargs="*", type=Path)
    options.add_argument("--data-dir", type=Path, required=True)
    options.add_argument("--splits", default="train,dev,test")
    options.add_argument("--model", default="builtin-base")
    chosen = options.parse_args()
    folder = chosen.data_dir / "sts"
    stsb = joined([read_pairs(find_task(folder, f"stsb.{split}")) for split in chosen.splits.split(",")])
    texts = list(dict.fromkeys(stsb.texts))
    models = {
        f"{chosen.model}, {pooling}": lambda pooling=pooling: isotrope.load(chosen.model, pooling=pooling)
        for pooling in ("cls", "mean")
    }
    for given in chosen.runs:
        is_run = (given / "run.json").is_file()
        label = f"{given.name}, step {RunFolder(given).history()[-1]['step']}" if is_run else given.name
        models[label] = (lambda given=given: last(given)) if is_run else (lambda given=given: isotrope.load(given))
    print(f"| {' | '.join(COLUMNS)} |")
    print("|" + "---|" * len(COLUMNS))
    for name, make in models.items():
        vectors = make().encode(texts)
        space = describe_vectors(vectors)
        pairs = describe_scored(vectors, texts, stsb.first, stsb.second, stsb.gold.tolist())
        spectrum = ", ".join(f"{space.spectrum[place - 1]:.3f}" for place in (2, 10, 100))
        shares = ", ".join(f"{100 * space.top_shares[count]:.1f} %" for count in ("1", "10"))
        cells = [
            name,
            f"{pairs.alignment:.3f}",
            f"{pairs.uniformity:.3f}",
            f"{pairs.spearman:.2f}",
            f"{space.mean_cosine:.3f}",
            f"{space.effective_rank:.1f}",
            spectrum,
            shares,
            f"{space.hubness:.2f}",
            f"{pairs.lexical.edit_cosine:.2f}",
        ]
        print(f"| {' | '.join(cells)} |", flush=True)
    print(f"\nSTS-B {chosen.splits}: {pairs.pairs:,} pairs, {len(texts):,} sentences; ", end="")
    print(f"edits and gold {pairs.lexical.edit_gold:.2f}")


if __name__ == "__main__":
    main()
