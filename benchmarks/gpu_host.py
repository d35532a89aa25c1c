"""What the host does for each sentence that a GPU encodes, stage by stage: it needs no GPU."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from gpu_runs import say


def host(model: str, sentences: list[str], chosen: argparse.Namespace) -> None:
    """Microseconds a sentence, on the clock; those of the tokenizer alone, then those of known words."""
    import isotrope
    from isotrope.encoders.encoder import _checked
    from isotrope.encoders.gpu_encoding import framed_rows, tokenized_ahead
    from isotrope.encoders.vector_groups import TOKEN_BUDGET, plan
    from isotrope.tokens.text_tokenizer import BLOCK, _flat

    encoder = isotrope.load(model, device="cpu")
    tokenizer, most = encoder.text_tokenizer, encoder.max_length
    extra, wide = len(tokenizer.start) + len(tokenizer.suffix), encoder.dimension
    blocks = [sentences[start : start + BLOCK] for start in range(0, len(sentences), BLOCK)]

    def timed(stage: str, work: Callable[[], Any]) -> Any:
        start = time.perf_counter()
        found = work()
        spent = (time.perf_counter() - start) / len(sentences)
        say(chosen, task="host", stage=stage, microseconds=round(spent * 1e6, 2), per_second=round(1 / spent))
        return found

    alone = timed("tokenizer alone", lambda: [_flat(tokenizer._ids(block)) for block in blocks])
    first = timed("known words, first time", lambda: list(tokenized_ahead(tokenizer, sentences)))
    timed("known words, again", lambda: list(tokenized_ahead(tokenizer, sentences)))
    ids = [np.concatenate([each[0] for each in found]) for found in (alone, [found for _, found in first])]
    say(chosen, task="host", equal_ids=bool(np.array_equal(*ids)))
    timed("texts are checked", lambda: _checked(sentences))
    flat, lengths = tokenizer.flat(sentences)
    starts, size = np.cumsum(lengths) - lengths, 16_384
    groups = [
        group + start
        for start in range(0, len(lengths), size)
        for group in plan(np.minimum(lengths[start : start + size] + extra, most), TOKEN_BUDGET["cuda"])
    ]
    timed("rows are framed", lambda: [framed_rows(tokenizer, flat, starts, lengths, group, most) for group in groups])
    vectors, found = np.empty((len(sentences), wide), np.float32), np.ones((len(sentences), wide), np.float32)

    def put() -> None:
        for group in groups:
            vectors[group] = found[: len(group)]

    timed("vectors are put in order", put)
