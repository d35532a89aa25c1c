"""word2vec's input: frequent words are subsampled, and noise words are drawn (Mikolov et al. 2013)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from isotrope.tokens.padded import Tokens

Floats = npt.NDArray[np.float64]


def keep_rates(frequency: Floats, threshold: float, released: bool = False) -> Floats:
    """The probability that a word of frequency f is kept: √(t/f), at most 1.

    The released code has √(t/f) + t/f. A threshold t of 0 keeps all.
    """
    if not threshold:
        return np.ones_like(frequency)
    ratio = threshold / np.maximum(frequency, 1e-300)
    return np.minimum(np.sqrt(ratio) + (ratio if released else 0.0), 1.0)


def keep_words(texts: Sequence[npt.NDArray[Any]], keep: Floats, rng: np.random.Generator) -> Tokens:
    """The texts without the words that the draw leaves out.

    What remains moves together, so that a window reaches further.
    """
    lengths = np.fromiter((len(text) for text in texts), dtype=np.int64, count=len(texts))
    flat = np.concatenate([*texts, np.empty(0, dtype=np.int64)]).astype(np.int64)
    kept = rng.random(len(flat)) < keep[flat]
    left = np.bincount(np.repeat(np.arange(len(texts)), lengths)[kept], minlength=len(texts))
    present = np.arange(max(int(left.max(initial=1)), 1)) < left[:, None]
    ids = np.zeros(present.shape, dtype=np.int64)
    ids[present] = flat[kept]
    return Tokens(torch.from_numpy(ids), torch.from_numpy(present.astype(np.int64)), left)


def draw_noise(ends: Floats, shape: tuple[int, ...], rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """Numbers of words, each drawn in proportion to its weight; ``ends`` is the running sum of the weights."""
    return np.searchsorted(ends, rng.random(shape) * ends[-1], side="right").astype(np.int64)
