"""Which words of a text are replaced, and by what: one copy keeps the meaning, one changes it (CLINE)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isotrope.lexicon.word_table import Dice, Numbers, WordTable

KEEPING = ("synonyms", "hypernyms", "inflections")
Flags = npt.NDArray[np.bool_]


def draw_synonyms(table: WordTable, slots: Numbers, texts: Numbers, share: float, rng: np.random.Generator) -> Numbers:
    """A synonym, a hypernym or another inflection for ``share`` of the words of each text, one at least; −1 for the
    others.

    Of the three each that the word has is as likely. Words without any stay, so a text may fall short of the share.
    """
    real = np.maximum(slots, 0)
    counts = np.stack([table.choices[kind].count(real) for kind in KEEPING])  # [kinds, words]
    there = (counts > 0) & (slots >= 0)
    luck, which, dice = rng.random((3, len(slots)))
    chosen = luckiest(counts.any(axis=0) & (slots >= 0), texts, wanted(texts, share, rng), luck)
    kind = (there.cumsum(axis=0) > (which * there.sum(axis=0)).astype(np.int64)).argmax(axis=0)
    drawn = np.full(len(slots), -1, dtype=np.int64)
    for number, name in enumerate(KEEPING):
        here = chosen & (kind == number)
        drawn[here] = table.choices[name].pick(slots[here], dice[here])
    return drawn


def draw_antonyms(
    table: WordTable, slots: Numbers, texts: Numbers, share: float, rng: np.random.Generator, fill: bool = True
) -> Numbers:
    """An antonym for ``share`` of the words of each text, one at least; −1 for the others.

    Few words have one, so the rest of the share is filled with random words of the same part of speech and inflection.
    """
    real = np.maximum(slots, 0)
    there = (table.choices["antonyms"].count(real) > 0) & (slots >= 0)
    luck, dice = rng.random((2, len(slots)))
    asked = wanted(texts, share, rng)
    chosen = luckiest(there, texts, asked, luck)
    drawn = np.full(len(slots), -1, dtype=np.int64)
    drawn[chosen] = table.choices["antonyms"].pick(slots[chosen], dice[chosen])
    if fill:
        left = asked - np.bincount(texts[chosen], minlength=len(asked))
        filled = luckiest((slots >= 0) & ~there, texts, left, luck)
        drawn[filled] = table.random_words(slots[filled], dice[filled])
    return drawn


def wanted(texts: Numbers, share: float, rng: np.random.Generator) -> Numbers:
    """How many words of each text: ``share`` of them, rounded by chance so that the mean is right, but one at least."""
    counts = np.bincount(texts)
    return np.maximum((share * counts + rng.random(len(counts))).astype(np.int64), 1)


def luckiest(there: Flags, texts: Numbers, asked: Numbers, luck: Dice) -> Flags:
    """The luckiest words of each text among those that are there, as many as are asked for."""
    order = np.lexsort((np.where(there, luck, 2.0), texts))
    sizes = np.bincount(texts, minlength=len(asked))
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[order] = np.arange(len(texts)) - (sizes.cumsum() - sizes)[texts[order]]
    return there & (ranks < asked[texts])
