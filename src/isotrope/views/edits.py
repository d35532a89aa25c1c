"""Edits of a text in ids: whole words are deleted, moved, repeated, hidden or replaced.

An edit is called with the ids of one text and a random generator, and returns new ids. Special tokens keep their place.
A text that has words keeps at least one, and a text without any is returned as it came. Use edits for views that must
mean the same; ``corruption`` has the stronger noise of denoising.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError
from isotrope.lexicon.synonyms import Entries, read_synonyms, tokenize_synonyms
from isotrope.tokens.text_tokenizer import TextTokenizer
from isotrope.tokens.word_pieces import Words

Ids = npt.NDArray[Any]
Numbers = npt.NDArray[np.intp]
Edit = Callable[[Ids, np.random.Generator], Ids]


@dataclass(frozen=True)
class WordEdit(ABC):
    """An edit of some share of a text's words."""

    words: Words
    share: float
    name: ClassVar[str]
    senseless: ClassVar[float | None] = None  # the share that would leave nothing
    takes_share: ClassVar[bool] = True

    def __post_init__(self) -> None:
        self.check(self.share)

    @classmethod
    def check(cls, share: float) -> None:
        """Raise ``InputError`` for a share that cannot work."""
        if not 0 <= share <= 1 or share == cls.senseless:
            but = "" if cls.senseless is None else f", but not {cls.senseless:g}"
            raise InputError(f"{cls.name} takes a share from 0 to 1{but}; {share} was given.")

    def __call__(self, ids: Ids, rng: np.random.Generator) -> Ids:
        starts, words = self.split(ids)
        return self.edit(ids, starts, words, rng) if words.size else ids

    def split(self, ids: Ids) -> tuple[Numbers, Numbers]:
        return self.words.split(ids)

    @abstractmethod
    def edit(self, ids: Ids, starts: Numbers, words: Numbers, rng: np.random.Generator) -> Ids:
        """``starts``: where each word or special token begins; ``words``: which of these are words, at least one."""


class Delete(WordEdit):
    """Each word is deleted with probability ``share``; the one with the highest draw always stays."""

    name = "delete"
    senseless = 1

    def edit(self, ids: Ids, starts: Numbers, words: Numbers, rng: np.random.Generator) -> Ids:
        luck = rng.random(words.size)
        kept = np.ones(starts.size, dtype=np.bool_)
        kept[words] = luck >= min(self.share, luck.max())
        return ids[kept.repeat(ends_of(starts, ids) - starts)]


class DeleteOne(WordEdit):
    """Exactly one word is deleted, drawn at random (SimCSE's "delete one word"); a text of one word stays as it is.

    It is written without a share.
    """

    name = "delete-one"
    takes_share = False

    def edit(self, ids: Ids, starts: Numbers, words: Numbers, rng: np.random.Generator) -> Ids:
        if words.size == 1:
            return ids
        gone = int(words[int(rng.integers(words.size))])
        return np.delete(ids, np.s_[starts[gone] : ends_of(starts, ids)[gone]])


class Crop(WordEdit):
    """A run of words stays, on average ``share`` of the text.

    The share is what is kept: SimCSE's "crop 10 %" is ``crop:0.9``.
    """

    name = "crop"
    senseless = 0

    def edit(self, ids: Ids, starts: Numbers, words: Numbers, rng: np.random.Generator) -> Ids:
        first, last = run_of(max(part_of(self.share, words.size, rng), 1), words.size, rng)
        kept = self.words.fixed.take(ids)
        kept[starts[words[first]] : ends_of(starts, ids)[words[last - 1]]] = True
        return ids[kept]


class Reorder(WordEdit):
    """A run of ``share`` of the words, at least two, is shuffled."""

    name = "reorder"

    def edit(self, ids: Ids, starts: Numbers, words: Numbers, rng: np.random.Generator) -> Ids:
        if self.share == 0 or words.size == 1:
            return ids
        first, last = run_of(max(part_of(self.share, words.size, rng), 2), words.size, rng)
        order = np.arange(starts.size)
        order[words[first:last]] = rng.permutation(words[first:last])
        return rebuilt(ids, starts, order)


class Repeat(WordEdit):
    """ESimCSE's repetition: of N pieces, a number drawn from 0 … max(2, ⌊share·N⌋) stand twice.

    As in the paper a piece is repeated without the rest of its word; ``RepeatWords`` repeats whole words. A share of 0
    repeats nothing, though the formula would allow two.
    """

    name = "repeat"

    def split(self, ids: Ids) -> tuple[Numbers, Numbers]:
        return self.words.split_pieces(ids)

    def edit(self, ids: Ids, starts: Numbers, words: Numbers, rng: np.random.Generator) -> Ids:
        if self.share == 0:
            return ids
        most = min(max(2, int(self.share * words.size)), words.size)
        times = np.ones(starts.size, dtype=np.intp)
        times[rng.permutation(words)[: rng.integers(most + 1)]] = 2
        return rebuilt(ids, starts, np.arange(starts.size).repeat(times))


class RepeatWords(Repeat):
    """The same on words: of N words, a number drawn from 0 … max(2, ⌊share·N⌋) stand twice."""

    name = "repeat-words"

    def split(self, ids: Ids) -> tuple[Numbers, Numbers]:
        return self.words.split(ids)


class Mask(WordEdit):
    """A run of words, on average ``share`` of the text, is hidden: each of its pieces becomes [MASK]."""

    name = "mask"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.words.mask is None:
            raise InputError(f"{self.name}: the tokenizer of this model has no mask token.")

    def edit(self, ids: Ids, starts: Numbers, words: Numbers, rng: np.random.Generator) -> Ids:
        first, last = run_of(part_of(self.share, words.size, rng), words.size, rng)
        if first == last:
            return ids
        hidden = ids.copy()
        run = hidden[starts[words[first]] : ends_of(starts, ids)[words[last - 1]]]
        run[~self.words.fixed.take(run)] = self.words.mask
        return hidden


@dataclass(frozen=True)
class Substitute(WordEdit):
    """Each word that has synonyms is replaced by one of them with probability ``share``.

    Only base forms are in WordNet's table, so "dogs" stays. CLINE's ``meaning_changes`` inflects and looks at parts of
    speech.
    """

    entries: Entries = field(compare=False, repr=False)
    name = "synonyms"

    @classmethod
    def of(cls, tokenizer: TextTokenizer, share: float, table: Mapping[str, Sequence[str]]) -> Substitute:
        """From a plain table, word → words that may stand for it."""
        return cls(tokenizer.words, share, tokenize_synonyms(table, tokenizer))

    def edit(self, ids: Ids, starts: Numbers, words: Numbers, rng: np.random.Generator) -> Ids:
        chosen = words[rng.random(words.size) < self.share]
        spans = zip(starts.take(chosen).tolist(), ends_of(starts, ids).take(chosen).tolist(), strict=True)
        parts, done = [], 0
        for start, end in spans:
            synonyms = self.entries.get(ids[start:end].astype(np.int32).tobytes())
            if synonyms:
                parts += [ids[done:start], synonyms[int(rng.random() * len(synonyms))]]
                done = end
        return np.concatenate([*parts, ids[done:]], dtype=ids.dtype, casting="unsafe") if parts else ids


def ends_of(starts: Numbers, ids: Ids) -> Numbers:
    """Where each word ends, given where each begins."""
    ends = np.empty_like(starts)
    ends[:-1], ends[-1] = starts[1:], ids.size
    return ends


def rebuilt(ids: Ids, starts: Numbers, order: Numbers) -> Ids:
    """The words that begin at ``starts``, in this order; one may come twice or not at all."""
    if starts.size == ids.size:
        return ids.take(order)
    lengths = (ends_of(starts, ids) - starts).take(order)
    shifts = starts.take(order) - lengths.cumsum() + lengths  # from the new place of a word to its old one
    places = shifts.repeat(lengths)
    return ids.take(places + np.arange(places.size))


def part_of(share: float, count: int, rng: np.random.Generator) -> int:
    """``share`` of ``count`` words, rounded up or down at random, so that the mean is the share itself."""
    return min(int(share * count + rng.random()), count)


def run_of(length: int, count: int, rng: np.random.Generator) -> tuple[int, int]:
    """First and last + 1 of a run of ``length`` neighbours among ``count``."""
    first = int(rng.integers(count - length + 1))
    return first, first + length


@dataclass(frozen=True)
class Compose:
    """One edit after another."""

    edits: tuple[Edit, ...]

    def __post_init__(self) -> None:
        if not self.edits:
            raise InputError("compose needs at least one edit.")

    def __call__(self, ids: Ids, rng: np.random.Generator) -> Ids:
        for edit in self.edits:
            ids = edit(ids, rng)
        return ids


@dataclass(frozen=True)
class OneOf:
    """One of the edits, drawn for each text."""

    edits: tuple[Edit, ...]

    def __post_init__(self) -> None:
        if not self.edits:
            raise InputError("one_of needs at least one edit.")

    def __call__(self, ids: Ids, rng: np.random.Generator) -> Ids:
        return self.edits[int(rng.integers(len(self.edits)))](ids, rng)


def compose(*edits: Edit) -> Compose:
    return Compose(edits)


def one_of(*edits: Edit) -> OneOf:
    return OneOf(edits)


KNOWN: dict[str, type[WordEdit]] = {
    edit.name: edit for edit in (Crop, Delete, DeleteOne, Mask, Reorder, Repeat, RepeatWords, Substitute)
}


def parse_edits(text: str, synonyms: Mapping[str, Sequence[str]] | None = None) -> Callable[[TextTokenizer], Edit]:
    """The edit that a setting names, for any tokenizer: ``parse_edits("delete:0.1,crop:0.6")(tokenizer)``.

    A comma means "then", a slash "or": ``delete:0.1/crop:0.9,repeat:0.32`` deletes or crops, then repeats. Everything
    that does not depend on the tokenizer is checked here, before a model is loaded. Without a table of ``synonyms``
    WordNet is read.
    """
    steps = [[_parse_edit(named.strip()) for named in step.split("/")] for step in text.split(",")]

    def made(edit: type[WordEdit], share: float, tokenizer: TextTokenizer) -> Edit:
        if issubclass(edit, Substitute):
            return edit.of(tokenizer, share, read_synonyms() if synonyms is None else synonyms)
        return edit(tokenizer.words, share)

    def bound(tokenizer: TextTokenizer) -> Edit:
        choices = [[made(edit, share, tokenizer) for edit, share in step] for step in steps]
        edits = [one_of(*step) if len(step) > 1 else step[0] for step in choices]
        return compose(*edits) if len(edits) > 1 else edits[0]

    return bound


def _parse_edit(named: str) -> tuple[type[WordEdit], float]:
    name, _, number = named.partition(":")
    known = f"known: {', '.join(sorted(KNOWN))}"
    if name not in KNOWN:
        raise InputError(f"Unknown edit '{name}'; {known}.")
    if not KNOWN[name].takes_share:
        if number:
            raise InputError(f"{name} takes no share; write it as {name}.")
        return KNOWN[name], 0.0
    try:
        share = float(number)
    except ValueError:
        raise InputError(f"'{named}' names no share; write it as {name}:0.1 ({known}).") from None
    KNOWN[name].check(share)
    return KNOWN[name], share
