"""CLINE's two copies of a text: one keeps the meaning by synonyms, one changes it by antonyms (Wang et al. 2021).

Both draws work on a whole batch: ``slots`` [words] are the words' places in a ``WordTable`` (−1: never replaced) and
``texts`` [words] the number of the text that each belongs to. ``Spelling`` turns texts into words and back.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from isotrope.lexicon.word_table import Dice, Numbers, WordTable

KEEPING = ("synonyms", "hypernyms", "inflections")
Flags = npt.NDArray[np.bool_]


def draw_synonyms(table: WordTable, slots: Numbers, texts: Numbers, share: float, rng: np.random.Generator) -> Numbers:
    """A word of the same meaning for ``share`` of the words of each text, at least for one; −1 for the others.

    It is a synonym, a hypernym or another inflection: each of these that the word has is equally likely. Words without
    any stay, so a text may fall short of the share.
    """
    real = np.maximum(slots, 0)
    counts = np.stack([table.choices[name].count(real) for name in KEEPING])  # [relations, words]
    there = (counts > 0) & (slots >= 0)
    luck, which, dice = rng.random((3, len(slots)))
    chosen = luckiest(counts.any(axis=0) & (slots >= 0), texts, wanted(texts, share, rng), luck)
    relation = (there.cumsum(axis=0) > (which * there.sum(axis=0)).astype(np.int64)).argmax(axis=0)
    drawn = np.full(len(slots), -1, dtype=np.int64)
    for number, name in enumerate(KEEPING):
        here = chosen & (relation == number)
        drawn[here] = table.choices[name].pick(slots[here], dice[here])
    return drawn


def draw_antonyms(
    table: WordTable, slots: Numbers, texts: Numbers, share: float, rng: np.random.Generator, fill: bool = True
) -> Numbers:
    """An antonym for ``share`` of the words of each text, at least for one; −1 for the others.

    Few words have one. With ``fill`` the rest of the share becomes random words of the same part of speech and
    inflection; without it a text may come back unchanged.
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
    """How many words of each text are replaced: ``share`` of them, at least one.

    The number is rounded up or down at random, so that its mean is the share itself.
    """
    counts = np.bincount(texts)
    return np.maximum((share * counts + rng.random(len(counts))).astype(np.int64), 1)


def luckiest(there: Flags, texts: Numbers, asked: Numbers, luck: Dice) -> Flags:
    """The words with the lowest ``luck`` in each text among the eligible ones (``there``), as many as asked for."""
    order = np.lexsort((np.where(there, luck, 2.0), texts))
    sizes = np.bincount(texts, minlength=len(asked))
    ranks = np.empty(len(texts), dtype=np.int64)
    ranks[order] = np.arange(len(texts)) - (sizes.cumsum() - sizes)[texts[order]]
    return there & (ranks < asked[texts])
