"""InfoWord's two views: a text with one n-gram masked, and the n-gram itself (Kong et al. 2020)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import torch

from isotrope.tokens.padded import Tokens
from isotrope.tokens.text_tokenizer import TextTokenizer


def hide_ngrams(
    tokens: Tokens,
    tokenizer: TextTokenizer,
    rng: np.random.Generator,
    length: float = 5.0,
    spread: float = 1.0,
    longest: int = 10,
) -> tuple[Tokens, list[npt.NDArray[np.int64]]]:
    """(the rows with one n-gram masked in each, the n-grams).

    n ~ N(length, spread²), rounded, between 1 and ``longest``; one token stays visible where a text has more than one.
    The n-gram lies between the special tokens that frame the text, so what was cut off is never chosen.
    """
    hidden = tokens.ids.numpy().copy()
    first, behind = len(tokenizer.prefix), len(tokenizer.suffix)
    ngrams = []
    for row, whole in zip(hidden, tokens.lengths.tolist(), strict=True):
        room = max(whole - first - behind, 0)
        drawn = int(np.clip(np.rint(rng.normal(length, spread)), 1, longest))
        size = min(drawn, max(room - 1, min(room, 1)))
        start = first + int(rng.integers(room - size + 1))
        ngrams.append(row[start : start + size].copy())
        row[start : start + size] = tokenizer.mask
    return replace(tokens, ids=torch.from_numpy(hidden)), ngrams
