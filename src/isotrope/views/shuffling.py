"""StructBERT's word order: some runs of three tokens are shuffled, and the labels restore them (Wang et al. 2020)."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch

from isotrope.tokens.padded import Tokens
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.masking import Masked, framing

RUN = 3
ORDERS = np.array([order for order in permutations(range(RUN)) if order != tuple(range(RUN))])  # the five wrong ones


def shuffle_trigrams(masked: Masked, tokenizer: TextTokenizer, rng: np.random.Generator, share: float = 0.05) -> Masked:
    """``share`` of the trigrams in which nothing is masked are put into a wrong order.

    Trigrams neither overlap nor reach over a special token, a prompt or a template. The labels are those of the
    shuffled positions alone.
    """
    ids = masked.tokens.ids.numpy().copy()
    free = (masked.tokens.mask.numpy() > 0) & ~np.isin(ids, list(tokenizer.specials)) & (masked.labels.numpy() < 0)
    free &= ~framing(masked.tokens, tokenizer)
    labels = np.full_like(ids, -100)
    if ids.shape[1] >= RUN:
        whole = np.lib.stride_tricks.sliding_window_view(free, RUN, axis=1).all(axis=2)
        chosen = np.argwhere(whole & (rng.random(whole.shape) < share))
        for row, start in rng.permutation(chosen):  # in random order: of two that overlap, either may stay
            place = slice(start, start + RUN)
            if (labels[row, place] < 0).all():
                labels[row, place] = ids[row, place]
                ids[row, place] = ids[row, place][ORDERS[rng.integers(len(ORDERS))]]
    tokens = Tokens(torch.from_numpy(ids), masked.tokens.mask, masked.tokens.lengths, masked.tokens.segments)
    return Masked.of(tokens, torch.from_numpy(labels))
