"""Triples: a sentence, the same with a synonym in one place, and with an antonym there. Which one is nearer?

The words come from WordNet, the most frequent sense alone, in the inflection of the word they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.evaluation.text_vectors import TextVectors
from isotrope.lexicon.english import WORD
from isotrope.lexicon.replacements import open_lexicon
from isotrope.lexicon.wordnet import wordnet_folder
from isotrope.measures.unit_vectors import unit_rows

Triples = list[tuple[str, str, str]]


@dataclass(frozen=True)
class HitRates:
    """Shares of the triples in which the sentence with the synonym is the nearer one."""

    by_cosine: float
    by_dot_product: float


def make_triples(texts: Sequence[str], seed: int = 0) -> Triples:
    """(sentence, with a synonym, with an antonym) of each sentence that has a word with both; the word and its
    replacements are drawn at random.
    """
    table = open_lexicon(wordnet_folder(), 1)
    rng = np.random.default_rng(seed)
    triples: Triples = []
    for text in texts:
        found = list(WORD.finditer(text.lower()))
        numbers = np.array([table.number.get(match[0], len(table.words)) for match in found], dtype=np.int64)
        slots = table.slots(numbers, np.zeros_like(numbers)) if len(numbers) else numbers
        real = np.maximum(slots, 0)
        there = (slots >= 0) & (table.choices["synonyms"].count(real) > 0) & (table.choices["antonyms"].count(real) > 0)
        if there.any():
            place = int(rng.choice(np.flatnonzero(there)))
            slot, draws = slots[place : place + 1], rng.random((2, 1))
            synonym, antonym = (
                table.words[int(table.choices[name].pick(slot, draw)[0])]
                for name, draw in zip(("synonyms", "antonyms"), draws, strict=True)
            )
            span = found[place].span()
            triples.append((text, _replaced(text, span, synonym), _replaced(text, span, antonym)))
    if not triples:
        raise InputError(
            "No sentence with a word that has both a synonym and an antonym was found; the text must be English."
        )
    return triples


def hit_rates(encoder: Encoder, triples: Triples) -> HitRates:
    """By cosine and by dot product; a tie is not a hit.

    CLINE trains dot products, and can do that by the length of vectors alone, which a cosine does not see.
    """
    vectors = TextVectors.encoded(encoder, (text for triple in triples for text in triple))
    plain = [vectors.of([triple[side] for triple in triples]).astype(np.float64) for side in range(3)]
    by_cosine, by_dot_product = (
        float(((original * synonym).sum(1) > (original * antonym).sum(1)).mean())
        for original, synonym, antonym in ([unit_rows(side) for side in plain], plain)
    )
    return HitRates(by_cosine, by_dot_product)


def _replaced(text: str, span: tuple[int, int], other: str) -> str:
    word = text[slice(*span)]
    return text[: span[0]] + (other.capitalize() if word.istitle() else other) + text[span[1] :]
