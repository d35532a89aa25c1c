"""Which part of SBERT-WK gains and which loses: the weights of layers, or those of tokens.

    python benchmarks/sbert_wk.py --data-dir DATA [--models builtin-base,builtin]

Spearman × 100 of the cosine on STS-B dev and SICK train, for each choice of both weights; [SEP] is left out everywhere.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

import isotrope
from isotrope.encoders.parts.layer_walk import LayerWalk, bend, layer_weights, share
from isotrope.encoders.vector_groups import plan
from isotrope.evaluation.scored_pairs import read_pairs
from isotrope.evaluation.sts_scores import correlate

SETS = ("stsb.dev", "sick.train")
LAYERS = ("the last", "equal", "SBERT-WK's")
TOKENS = ("equal", "SBERT-WK's")


def sentence_vectors(encoder: isotrope.Encoder, texts: list[str]) -> dict[tuple[str, str], np.ndarray]:
    """By weights of layers and of tokens."""
    tokens, first = encoder.tokenize(texts), int(encoder.backbone.config.num_hidden_layers) // 3
    walk = LayerWalk(first_layer=first)
    found = {(layer, token): np.zeros((len(texts), encoder.dimension)) for layer in LAYERS for token in TOKENS}
    with torch.inference_mode():
        for rows in plan(tokens.lengths, 4096):
            part = tokens.rows(rows).to(encoder.device)
            lengths = part.mask.sum(dim=1, keepdim=True) - 1
            present = torch.arange(part.mask.shape[1], device=part.mask.device) < lengths
            states = torch.stack(list(encoder.eval().layers(part)[walk.first_layer :]), dim=2)[present]
            joined = {
                "the last": states[:, -1],
                "equal": states.mean(1),
                "SBERT-WK's": torch.einsum("tl,tld->td", layer_weights(states, walk.window), states),
            }
            weights = {"equal": torch.ones_like(states[:, 0, 0]), "SBERT-WK's": bend(states)}
            for (layer, token), vectors in found.items():
                spread = states.new_zeros((*present.shape, encoder.dimension)), states.new_zeros(present.shape)
                spread[0][present], spread[1][present] = joined[layer], weights[token]
                vectors[rows] = torch.einsum("rt,rtd->rd", share(spread[1], present), spread[0]).cpu().numpy()
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data-dir", type=Path, required=True)
    options.add_argument("--models", default="builtin-base,builtin")
    chosen = options.parse_args()
    print("| model | layers | tokens | " + " | ".join(SETS) + " |\n|---|---|---|" + "---|" * len(SETS))
    for model in chosen.models.split(","):
        encoder, table = isotrope.load(model), {}
        for name in SETS:
            first, second, gold, subsets = read_pairs(chosen.data_dir / "sts" / f"{name}.tsv.gz")
            texts = sorted({*first, *second})
            index = {text: number for number, text in enumerate(texts)}
            for key, vectors in sentence_vectors(encoder, texts).items():
                units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
                cosine = (units[[index[t] for t in first]] * units[[index[t] for t in second]]).sum(axis=1)
                table.setdefault(key, []).append(100 * correlate("spearman", cosine, gold, subsets, "all"))
        for (layers, tokens), scores in table.items():
            print(
                f"| `{model}` | {layers} | {tokens} | " + " | ".join(f"{score:.1f}" for score in scores) + " |",
                flush=True,
            )


if __name__ == "__main__":
    main()
