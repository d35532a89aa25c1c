"""Cosines of pairs under every read-out of a backbone, from one forward a batch.

    read-out (K, p):   v = p(H_K),   K = 0 … L,   p one of cls, mean, max
    and the mixes of layers that have a name (first_last, embed_last, last2)

Where a cache is open and all vectors fit (layer_vectors.py), each text runs once, and read-outs share vectors with
other suites. Else pairs run together, and nothing but their cosines is kept: thirteen layers of three poolings would be
gigabytes. What follows the pooling (a Dense, a whitening) belongs to one read-out and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn.functional import cosine_similarity

from isotrope.encoders.encoder import Encoder
from isotrope.encoders.first_token import lacks_first_token
from isotrope.encoders.modes import evaluating
from isotrope.encoders.pooling import LAYERED, Pooling, pool
from isotrope.encoders.vector_groups import TOKEN_BUDGET, plan
from isotrope.evaluation.layer_vectors import fits, layer_vectors
from isotrope.evaluation.scored_pairs import Floats
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.evaluation.vector_cache import active_cache
from isotrope.progress import bar


@dataclass(frozen=True)
class ReadOut:
    """``layer`` is None for a mix of layers; ``name`` is what ``pooling`` takes."""

    name: str
    layer: int | None
    mode: str


def read_outs(encoder: Encoder) -> list[ReadOut]:
    """Every layer under every pooling, then the mixes. A model without a first token is read at its last instead."""
    layers = int(encoder.backbone.config.num_hidden_layers)
    first = "lasttoken" if lacks_first_token(encoder.backbone, encoder.text_tokenizer) else "cls"
    single = [
        ReadOut(Pooling.named(f"layer:{layer}:{mode}", layers).name, layer, mode)
        for layer in range(layers + 1)
        for mode in (first, "mean", "max")
    ]
    return [*single, *(ReadOut(name, None, "mean") for name in LAYERED if layers > 1)]


def pair_cosines(encoder: Encoder, first: Sequence[str], second: Sequence[str]) -> dict[str, Floats]:
    """[pairs] for each read-out, by name: the cosine of ``first[i]`` and ``second[i]``."""
    chosen = read_outs(encoder)
    cache, texts = active_cache(encoder), sorted({*first, *second})
    poolings = [Pooling.named(one.name, int(encoder.backbone.config.num_hidden_layers)) for one in chosen]
    if cache is not None and fits(encoder, poolings, texts):
        read = layer_vectors(encoder, poolings, texts, cache)
        return {name: _cosines_of(TextVectors(texts, vectors), first, second) for name, vectors in read.items()}
    found = {one.name: np.empty(len(first)) for one in chosen}
    tokenizer = encoder.text_tokenizer
    flat, lengths = tokenizer.flat([encoder.prompt + text for text in (*first, *second)])
    sequences = np.split(flat, np.cumsum(lengths)[:-1])
    longest = np.maximum(lengths[: len(first)], lengths[len(first) :]) + len(tokenizer.prefix) + len(tokenizer.suffix)
    budget = TOKEN_BUDGET.get(encoder.device.type, TOKEN_BUDGET["cuda"]) // 2
    with evaluating(encoder), bar("reading every layer", len(first), show=len(first) > 2000 and None) as advance:
        for group in plan(np.minimum(longest, encoder.max_length), budget):
            rows = [*group, *(group + len(first))]
            tokens = encoder.frame([sequences[row] for row in rows]).to(encoder.device)
            for name, values in _cosines(chosen, encoder.layers(tokens), tokens.mask).items():
                found[name][group] = values
            advance(len(group))
    return found


def _cosines(chosen: Sequence[ReadOut], layers: Sequence[torch.Tensor], mask: torch.Tensor) -> dict[str, Floats]:
    """The rows are the first sides, then the second sides."""
    found = {}
    for one in chosen:
        vectors = (
            Pooling.named(one.name, len(layers) - 1)(layers, mask)
            if one.layer is None
            else pool(one.mode, layers[one.layer], mask)
        )
        left, right = vectors.double().chunk(2)
        found[one.name] = cosine_similarity(left, right).cpu().numpy()
    return found


def _cosines_of(vectors: TextVectors, first: Sequence[str], second: Sequence[str]) -> Floats:
    left, right = (torch.from_numpy(vectors.of(side)).double() for side in (first, second))
    found: Floats = cosine_similarity(left, right).numpy()
    return found
