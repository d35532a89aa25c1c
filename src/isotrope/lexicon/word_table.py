"""What may stand in the place of each word, in the same inflection, as arrays: a batch of texts is looked up at once.

A slot is a word as one part of speech: "saw" has a slot as a noun and one as a verb. Nothing here knows a language:
``make_lexicon`` fills the table.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isotrope.lexicon.wordnet import PARTS_OF_SPEECH

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
Dice = npt.NDArray[np.float64]  # throws in [0, 1)
PARTS = len(PARTS_OF_SPEECH)
REPLACEMENTS = ("synonyms", "hypernyms", "inflections", "antonyms")
ARRAYS = ("prior", "left", "right", "form", "weights")


@dataclass(frozen=True, eq=False)
class Choices:
    """The words that may fill each slot, one list after another."""

    starts: Numbers  # [slots + 1]
    words: Numbers

    @classmethod
    def of(cls, filled: dict[int, list[int]], slots: int) -> Choices:
        order = sorted(filled)
        starts = np.zeros(slots + 1, dtype=np.int64)
        starts[np.array(order, dtype=np.int64) + 1] = [len(filled[slot]) for slot in order]
        return cls(starts.cumsum(), np.array([word for slot in order for word in filled[slot]], dtype=np.int64))

    def count(self, slots: Numbers) -> Numbers:
        return self.starts[slots + 1] - self.starts[slots]

    def pick(self, slots: Numbers, dice: Dice) -> Numbers:
        """One of the words of each slot, by the throw that is given; no slot may be empty."""
        return self.words[self.starts[slots] + (dice * self.count(slots)).astype(np.int64)]


@dataclass(frozen=True, eq=False)
class WordTable:
    """All words and what may replace them.

    ``number`` maps a word to its place in ``words``; an unknown word has the number ``len(words)``, and no slots.
    """

    words: list[str]
    number: dict[str, int]
    prior: Floats  # [words + 1, parts]: log of how often a word is a noun, a verb, …; −inf for what it never is
    # [words + 2, parts]: log of how much more often than usual a word behind this one is a noun, …; last: the border
    left: Floats
    right: Floats  # the same of a word before this one
    choices: dict[str, Choices]
    form: Numbers  # [slots]: which words have the same part of speech and inflection
    members: Choices  # for each form the words that WordNet's tagged text has
    weights: npt.NDArray[np.float64]  # how often each of them is met, summed up

    def slots(self, numbers: Numbers, texts: Numbers) -> Numbers:
        """The likeliest slot of each word in its text, −1 for words that may not be replaced.

            part = argmax_p  log P(p | word) + log P(p | left neighbour)/P(p) + log P(p | right neighbour)/P(p)

        ``texts`` [words] is the number of the text that each word belongs to.
        """
        border = len(self.words) + 1
        same = texts[1:] == texts[:-1]
        before, behind = np.full_like(numbers, border), np.full_like(numbers, border)
        before[1:][same], behind[:-1][same] = numbers[:-1][same], numbers[1:][same]
        prior = self.prior[numbers]
        part = (prior + self.left[before] + self.right[behind]).argmax(axis=1)
        return np.where(np.isneginf(prior).all(axis=1), -1, numbers * PARTS + part)

    def random_words(self, slots: Numbers, dice: Dice) -> Numbers:
        """A random word of the same part of speech and inflection for each slot, drawn in proportion to its frequency;
        −1 where the draw is the word itself.
        """
        drawn = np.full(len(slots), -1, dtype=np.int64)
        forms = self.form[slots]
        for form in np.unique(forms).tolist():
            here = forms == form
            first, end = self.members.starts[form : form + 2].tolist()
            if first < end:
                below = float(self.weights[first - 1]) if first else 0.0
                thrown = below + dice[here] * (float(self.weights[end - 1]) - below)
                places = np.searchsorted(self.weights, thrown, side="right").clip(first, end - 1)
                drawn[here] = self.members.words[places]
        return np.where(drawn == slots // PARTS, -1, drawn)

    def save(self, folder: Path) -> None:
        lists = {**self.choices, "members": self.members}
        listed = {f"{name} {part}": getattr(each, part) for name, each in lists.items() for part in ("starts", "words")}
        np.savez(folder / "arrays.npz", **listed, **{name: getattr(self, name) for name in ARRAYS})
        (folder / "words.json").write_text(json.dumps(self.words), encoding="utf-8")

    @classmethod
    def load(cls, folder: Path) -> WordTable:
        words = json.loads((folder / "words.json").read_text(encoding="utf-8"))
        number = {word: place for place, word in enumerate(words)}
        with np.load(folder / "arrays.npz", allow_pickle=False) as found:
            lists = {
                name: Choices(found[f"{name} starts"], found[f"{name} words"]) for name in (*REPLACEMENTS, "members")
            }
            arrays = {name: found[name] for name in ARRAYS}
        return cls(words=words, number=number, members=lists.pop("members"), choices=lists, **arrays)
