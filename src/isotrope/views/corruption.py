"""Noise for denoising (BART; Lewis et al. 2020): sentences change places, words are masked, deleted or infilled, the
text is rotated.

A corruptor is called with the sentences of one text and a random generator, and returns the ids of the corrupted text.
Sentences are known only while the text is clean, so they change places first; the other noises are edits of the whole
text, in the order given. ``edits`` has the noises of contrastive views, which keep more of the text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from isotrope.data.corpus import Sentence, running_text
from isotrope.errors import InputError
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.views.edits import Compose, Delete, Edit, Ids, Mask, Numbers, WordEdit, ends_of

PERMUTE = "permute"
Item = TypeVar("Item")


class Hiding(Mask):
    """An edit that puts [MASK] into the text."""

    @property
    def hider(self) -> int:
        assert self.words.mask is not None  # refused when it was made
        return self.words.mask


class HideWords(Hiding):
    """Each word is hidden with probability ``share``: every piece of it becomes [MASK].

    ``Mask`` hides one run of neighbours instead.
    """

    def edit(self, ids: Ids, starts: Numbers, words: Numbers, rng: np.random.Generator) -> Ids:
        hidden = np.zeros(starts.size, dtype=np.bool_)
        hidden[words] = rng.random(words.size) < self.share
        return np.where(hidden.repeat(ends_of(starts, ids) - starts), self.hider, ids)


@dataclass(frozen=True)
class Infill(Hiding):
    """Spans of Poisson(λ) words, ⌈share · words⌉ in all, become one [MASK] each.

    A span of no words puts a [MASK] between two words. The last span is cut so that exactly so many words are hidden.
    Spans do not overlap, and all arrangements of them are equally likely. λ is ``length``.
    """

    length: float = field(default=3.0, kw_only=True)
    name = "infill"

    def edit(self, ids: Ids, starts: Numbers, words: Numbers, rng: np.random.Generator) -> Ids:
        lengths = span_lengths(math.ceil(self.share * words.size), self.length, rng)
        if not lengths.size:
            return ids
        slots = np.ones(words.size - int(lengths.sum()) + lengths.size, dtype=np.intp)  # a visible word, or a span
        spans = np.sort(rng.choice(slots.size, lengths.size, replace=False))
        slots[spans] = rng.permutation(lengths)
        # The word that each span begins with; one behind the last where the span stands at the end.
        first = (slots.cumsum() - slots)[spans]
        covered = [np.arange(start, start + size) for start, size in zip(first, slots[spans], strict=True)]
        hidden = np.zeros(starts.size, dtype=np.bool_)
        hidden[words[np.concatenate(covered)]] = True
        kept = ~hidden.repeat(ends_of(starts, ids) - starts)
        before = np.concatenate(([0], kept.cumsum()))  # pieces that stay, before each piece
        return np.insert(ids[kept], before[np.append(starts[words], ids.size)[first]], self.hider)


class Rotate(WordEdit):
    """With probability ``share`` the text begins with a word drawn at random; what stood before it goes to the end."""

    name = "rotate"

    def edit(self, ids: Ids, starts: Numbers, words: Numbers, rng: np.random.Generator) -> Ids:
        return np.roll(ids, -int(starts[rng.choice(words)])) if rng.random() < self.share else ids


def span_lengths(budget: int, mean: float, rng: np.random.Generator) -> Numbers:
    """Lengths from Poisson(mean) until they sum to ``budget``; the last one is cut to fit."""
    lengths: list[int] = []
    while budget > 0:
        lengths.append(min(int(rng.poisson(mean)), budget))
        budget -= lengths[-1]
    return np.array(lengths, dtype=np.intp)


def permute_sentences(sentences: Sequence[Item], share: float, rng: np.random.Generator) -> list[Item]:
    """⌈share · sentences⌉ of the sentences, drawn at random, change places among each other."""
    order = np.arange(len(sentences))
    moved = rng.choice(order, math.ceil(share * order.size), replace=False)
    order[np.sort(moved)] = moved
    return [sentences[place] for place in order.tolist()]


@dataclass(frozen=True)
class Corruptor:
    """Sentences first, then the edits of the whole text."""

    permuted: float  # share of the sentences that change places
    edit: Edit

    def __call__(self, sentences: Sequence[Sentence], rng: np.random.Generator) -> Ids:
        ordered = permute_sentences(sentences, self.permuted, rng) if self.permuted else sentences
        return self.edit(running_text(ordered), rng)


NOISES: dict[str, type[WordEdit]] = {noise.name: noise for noise in (HideWords, Delete, Infill, Rotate)}


def parse_noise(text: str, infill_length: float = 3.0) -> Callable[[TextTokenizer], Corruptor]:
    """The corruptor that a setting names, for any tokenizer: ``parse_noise("permute:1,infill:0.3")(tokenizer)``.

    A comma means "then". Everything that does not depend on the tokenizer is checked here, before a model is loaded.
    """
    if not infill_length >= 1:
        raise InputError(f"infill_length is a mean number of words and must be at least 1; {infill_length} was given.")
    steps = [_parse(named.strip()) for named in text.split(",")]
    permuted = steps.pop(0)[1] if steps[0][0] == PERMUTE else 0.0
    if PERMUTE in (name for name, _ in steps):
        raise InputError(f"'{text}': {PERMUTE} must come first, while it is known where sentences end.")

    def made(name: str, share: float, tokenizer: TextTokenizer) -> Edit:
        edit = NOISES[name](tokenizer.words, share)
        return replace(edit, length=infill_length) if isinstance(edit, Infill) else edit

    return lambda tokenizer: Corruptor(permuted, _all([made(name, share, tokenizer) for name, share in steps]))


def _all(edits: list[Edit]) -> Edit:
    return Compose(tuple(edits)) if edits else lambda ids, rng: ids


def _parse(named: str) -> tuple[str, float]:
    name, _, number = named.partition(":")
    known = f"known: {', '.join((PERMUTE, *NOISES))}"
    if name not in (PERMUTE, *NOISES):
        raise InputError(f"Unknown noise '{name}'; {known}.")
    try:
        share = float(number)
    except ValueError:
        raise InputError(f"'{named}' names no share; write it as {name}:0.3 ({known}).") from None
    if name != PERMUTE:
        NOISES[name].check(share)
    elif not 0 <= share <= 1:
        raise InputError(f"{name} takes a share from 0 to 1; {share} was given.")
    return name, share
