"""Does TaCL make the tokens of a sentence less alike in the top layer? By layer, before and after, against
controls of the same steps.

    python benchmarks/token_similarity.py DOCUMENTS [--model builtin-base] [--steps 60] [--runs tacl,nsp+mlm,mlm]
    [--SETTING VALUE …]

DOCUMENTS is plain text, one sentence a line, an empty line between documents; its last tenth is measured and not
trained on. ``nsp+mlm`` is next-sentence prediction with masked language modelling added, BERT's own tasks and TaCL
without its contrast; ``mlm`` reads single sentences. A figure is the mean cosine of two different tokens of a sentence,
every pair counted once; in brackets what is left of it after taking away the mean cosine of tokens of two sentences.
More settings go to every run, such as --batch-size 64.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path

import torch

import isotrope
from isotrope.encoders.vector_groups import plan
from isotrope.evaluation.geometry_layers import LayerCosines, LayerSums

MEASURED = 1000  # sentences at most


def curve(encoder: isotrope.Encoder, texts: list[str]) -> list[LayerCosines]:
    """Self-similarity of each layer, the embeddings first."""
    sums, tokens = LayerSums(), encoder.tokenize(texts)
    with torch.inference_mode():
        for rows in plan(tokens.lengths, 4096):
            part = tokens.rows(rows).to(encoder.device)
            sums.add(encoder.eval().layers(part), part.mask)
    return sums.rows()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("documents", type=Path)
    options.add_argument("--model", default="builtin-base")
    options.add_argument("--steps", type=int, default=60)
    options.add_argument("--runs", default="tacl,nsp+mlm,mlm")
    options.add_argument("--output", type=Path, help="keep the runs here; default: a folder that is removed")
    chosen, rest = options.parse_known_args()
    settings = dict(zip((name.lstrip("-") for name in rest[::2]), rest[1::2], strict=True))
    warnings.simplefilter("ignore")
    documents = [part for part in chosen.documents.read_text(encoding="utf-8").split("\n\n") if part.strip()]
    cut = len(documents) - max(len(documents) // 10, 1)
    texts = [line for part in documents[cut:] for line in part.splitlines() if line.strip()][:MEASURED]
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "train.txt"
        text.write_text("\n\n".join(documents[:cut]) + "\n", encoding="utf-8")
        curves = {"before": curve(isotrope.load(chosen.model), texts)}
        for run in chosen.runs.split(","):
            method, _, auxiliary = run.partition("+")
            weight = {f"{auxiliary}_weight": 1.0} if auxiliary else {}
            output = (chosen.output or Path(folder)) / run
            done = isotrope.train(
                method,
                text,
                chosen.model,
                output,
                max_steps=chosen.steps,
                eval_steps=chosen.steps,
                final_table=False,
                **weight,
                **settings,
            )
            curves[run] = curve(done.encoder, texts)
    print(
        f"{len(texts):,} sentences of {len(documents) - cut:,} documents that no run saw; "
        f"{chosen.steps} steps from {chosen.model}\n"
    )
    print("| layer | " + " | ".join(curves) + " |\n|---" + "|---" * len(curves) + "|")
    for layer in range(len(curves["before"])):
        cells = [f"{rows[layer].self_similarity:.3f} ({rows[layer].adjusted:.3f})" for rows in curves.values()]
        print(f"| {layer} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
