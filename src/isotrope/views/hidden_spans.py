"""Spans that a decoder must generate: one fragment of a text (MASS), or several with a sentinel each (T5)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.edits import Ids

Hidden = npt.NDArray[np.bool_]
KEPT, REPLACED = 0.1, 0.1  # shares of a fragment, as in BERT


def draw_fragment(length: int, share: float, edge_share: float, rng: np.random.Generator) -> slice:
    """A run of ``share`` of the tokens, at least one.

    With probability ``edge_share`` it begins the text, with the same probability it ends it, else it lies anywhere.
    """
    size = min(max(round(share * length), 1), length)
    last = length - size
    luck = rng.random()
    anywhere = int(rng.integers(last + 1))
    start = 0 if luck < edge_share else last if luck < 2 * edge_share else anywhere
    return slice(start, start + size)


def hide_fragment(ids: Ids, fragment: slice, tokenizer: TextTokenizer, rng: np.random.Generator) -> Ids:
    """BERT's replacement over the fragment: a tenth stays, a tenth becomes a random token, the rest [MASK]."""
    hidden = ids.copy()
    part = hidden[fragment]
    fate = rng.random(part.size)
    part[fate < 1 - KEPT - REPLACED] = tokenizer.mask
    part[fate >= 1 - REPLACED] = rng.integers(0, tokenizer.vocabulary, size=int((fate >= 1 - REPLACED).sum()))
    return hidden


def span_counts(length: int, density: float, mean: float, most: int) -> tuple[int, int]:
    """How many tokens are hidden, m, and in how many spans; none of a single token, or of no token.

        m = min(max(⌊n·r⌉, 1), n − 1),   spans = max(1, ⌊m/μ⌉)

    n is ``length``, r ``density``, μ ``mean``; there are at most ``most`` spans.
    """
    hidden = min(max(round(length * density), 1), max(length - 1, 0))
    return hidden, min(max(round(hidden / mean), 1), hidden, length - hidden, most)


def draw_spans(length: int, density: float, mean: float, most: int, rng: np.random.Generator) -> Hidden:
    """T5's noise: hidden and visible tokens are cut at random into equally many parts, which alternate.

    A visible part comes first, so the first token is never hidden, the last always is, and the number of hidden tokens
    is exact.
    """
    hidden, spans = span_counts(length, density, mean, most)
    if not hidden:
        return np.zeros(length, dtype=np.bool_)
    parts = np.stack([random_parts(length - hidden, spans, rng), random_parts(hidden, spans, rng)], axis=1)
    return np.tile([False, True], spans).repeat(parts.flatten())


def random_parts(total: int, parts: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """``total`` as a sum of ``parts`` numbers above zero; all such sums are equally likely."""
    cuts = np.sort(rng.choice(total - 1, parts - 1, replace=False)) + 1
    return np.diff(cuts, prepend=0, append=total)


def with_sentinels(ids: Ids, hidden: Hidden, top: int) -> tuple[Ids, Ids]:
    """(the text with a sentinel for each hidden run, each sentinel with the run it stands for).

    Sentinels count down from the id ``top``.
    """
    begins = hidden & ~np.concatenate(([False], hidden[:-1]))
    sentinels = top - np.arange(begins.sum())
    source = ids.copy()
    source[begins] = sentinels
    return source[begins | ~hidden], np.insert(ids[hidden], hidden.cumsum()[begins] - 1, sentinels)


def raw_length(room: int, density: float, mean: float, most: int) -> int:
    """The longest text whose visible tokens and sentinels fit into ``room``.

    T5's 512 leave 511 besides the end, into which 568 tokens fit.
    """
    length = room
    while True:
        hidden, spans = span_counts(length + 1, density, mean, most)
        if length + 1 - hidden + spans > room:
            return length
        length += 1
