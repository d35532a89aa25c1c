"""Vectors of texts under many read-outs of a backbone, from one forward a batch, shared with other suites by the cache.

The vectors of a read-out (K, p) are those of an encoder with the pooling ``layer:K:p`` and nothing behind it, so they
are cached as such an encoder's. All read-outs of a small model fit into memory; those of a large one do not, and
``pair_cosines`` then keeps cosines alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from isotrope.encoders.content_fingerprint import readings
from isotrope.encoders.encoder import Encoder, Vectors
from isotrope.encoders.finite_vectors import check_finite
from isotrope.encoders.fused_linear import fused_linears
from isotrope.encoders.gpu_encoding import framed_rows
from isotrope.encoders.group_threads import side_by_side
from isotrope.encoders.modes import evaluating
from isotrope.encoders.pooling import Pooling
from isotrope.encoders.vector_groups import TOKEN_BUDGET, Rows, plan
from isotrope.evaluation.vector_cache import VectorCache, model_key
from isotrope.progress import bar

MOST = 1 << 30  # bytes of all vectors together


def fits(encoder: Encoder, poolings: Sequence[Pooling], texts: Sequence[str]) -> bool:
    return len(poolings) * len(texts) * int(encoder.backbone.config.hidden_size) * 4 <= MOST


def layer_vectors(
    encoder: Encoder, poolings: Sequence[Pooling], texts: Sequence[str], cache: VectorCache
) -> dict[str, Vectors]:
    """[texts, d] for each pooling, by its name; one pass for all that is not known yet."""
    keys = [model_key(encoder, found) for found in readings(encoder, poolings)]
    if not all(cache.known(key, texts) for key in keys):
        missing = [text for text in texts if not all(cache.known(key, [text]) for key in keys)]
        cache.encoded += len(missing)
        for key, vectors in zip(keys, read_layers(encoder, poolings, missing), strict=True):
            check_finite(missing, vectors)
            cache.keep(key, missing, vectors)
    named = zip(poolings, keys, strict=True)
    return {pooling.name: cache.vectors(key, texts, encoder.encode) for pooling, key in named}


def read_layers(encoder: Encoder, poolings: Sequence[Pooling], texts: Sequence[str]) -> list[Vectors]:
    """[texts, d] for each pooling; every text runs through the model once."""
    tokenizer = encoder.text_tokenizer
    flat, lengths = tokenizer.flat([encoder.prompt + text for text in texts])
    starts = np.cumsum(lengths) - lengths
    whole = np.minimum(lengths + len(tokenizer.start) + len(tokenizer.suffix), encoder.max_length)
    width = int(encoder.backbone.config.hidden_size)
    found = [np.empty((len(texts), width), dtype=np.float32) for _ in poolings]
    budget = TOKEN_BUDGET.get(encoder.device.type, TOKEN_BUDGET["cuda"])

    def pooled(group: Rows) -> tuple[Rows, list[Vectors]]:
        tokens = framed_rows(tokenizer, flat, starts, lengths, group, encoder.max_length).to(encoder.device)
        layers = encoder.layers(tokens)
        read = (one(layers if one.needs_all_layers else layers[-1:], tokens.mask) for one in poolings)
        return group, [vectors.float().cpu().numpy() for vectors in read]

    shown = bar("reading every layer", len(texts), show=len(texts) > 2000 and None)
    with evaluating(encoder), fused_linears(encoder, int(whole.sum())), shown as advance:
        for group, read in side_by_side(pooled, list(plan(whole, budget)), encoder, encoder.device):
            for vectors, some in zip(found, read, strict=True):
                vectors[group] = some
            advance(len(group))
    return found
