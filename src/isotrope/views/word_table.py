"""What may stand in the place of each English word, in the same inflection: WordNet as arrays, so that a batch is looked up at once.

A slot is a word as one part of speech: "saw" has a slot as a noun and one as a verb.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isotrope.views.inflection import Inflection
from isotrope.views.wordnet import PARTS_OF_SPEECH, Related, read_counts, read_synsets, related_words

Numbers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]
PARTS = len(PARTS_OF_SPEECH)
KINDS = ("synonyms", "hypernyms", "inflections", "antonyms")
WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")  # of a text in small letters
UNSEEN = 0.5  # what a reading counts that the tagged text does not have
SMOOTHING = 5.0  # examples that a neighbour must have to be believed half
FUNCTION_WORDS = frozenset(
    "a about above across after again against all along although am among an and another any anybody anyone anything are around as at away "
    "be because been before behind being below beneath beside besides between beyond both but by can cannot could did do does doing don done "
    "down during each either else enough even ever every everybody everyone everything except few for from had has have having he her here "
    "hers herself him himself his how however i if in inside into is it its itself just least less lest like ll many may me might mine more "
    "most much must my myself near neither never no nobody none nor not nothing now of off on once one ones only onto or other others ought "
    "our ours ourselves out outside over per perhaps quite rather re same shall she should since so some somebody someone something such "
    "than that the their theirs them themselves then there therefore these they this those though through throughout thus till to together "
    "too toward towards two under unless until up upon us ve very was we were what whatever when whenever where whereas wherever whether "
    "which whichever while who whoever whom whose why will with within without would yes yet you your yours yourself yourselves".split()
)


@dataclass(frozen=True, eq=False)
class Choices:
    """The words that may fill each slot, one list after another."""

    starts: Numbers  # [slots + 1]
    words: Numbers

    @classmethod
    def of(cls, lists: list[list[int]]) -> Choices:
        starts = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum([len(each) for each in lists], out=starts[1:])
        return cls(starts, np.array([word for each in lists for word in each], dtype=np.int64))

    def count(self, slots: Numbers) -> Numbers:
        return self.starts[slots + 1] - self.starts[slots]

    def pick(self, slots: Numbers, dice: npt.NDArray[np.float64]) -> Numbers:
        """One of the words of each slot, by the throw that is given; no slot may be empty."""
        return self.words[self.starts[slots] + (dice * self.count(slots)).astype(np.int64)]


@dataclass(frozen=True, eq=False)
class WordTable:
    """``number`` numbers the words; a word that is not there has the number ``len(words)``, and no slots."""

    words: list[str]
    number: dict[str, int]
    prior: Floats  # [words + 1, parts]: log of how often a word is a noun, a verb, …; −inf for what it never is
    left: Floats  # [words + 2, parts]: log of how much more often than usual a word behind this one is a noun, …; last: the border
    right: Floats  # the same of a word before this one
    choices: dict[str, Choices]
    form: npt.NDArray[np.int64]  # [slots]: which words have the same part of speech and inflection
    same_form: list[tuple[Numbers, npt.NDArray[np.float64]]]  # by form: the words that WordNet's tagged text has, how often in sum

    def slots(self, numbers: Numbers, texts: Numbers) -> Numbers:
        """The likeliest slot of each word in its text, −1 for words that may not be replaced; ``texts`` says whose each word is.

            part = argmax_p  log P(p | word) + log P(p | left neighbour)/P(p) + log P(p | right neighbour)/P(p)
        """
        border = len(self.words) + 1
        same = texts[1:] == texts[:-1]
        before, behind = np.full_like(numbers, border), np.full_like(numbers, border)
        before[1:][same], behind[:-1][same] = numbers[:-1][same], numbers[1:][same]
        prior = self.prior[numbers]
        part = (prior + self.left[before] + self.right[behind]).argmax(axis=1)
        return np.where(np.isneginf(prior).all(axis=1), -1, numbers * PARTS + part)

    def random_words(self, slots: Numbers, dice: npt.NDArray[np.float64]) -> Numbers:
        """A word of the same part of speech and inflection for each slot, as often as it is common; −1 where it would be the same."""
        drawn = np.full(len(slots), -1, dtype=np.int64)
        forms = self.form[slots]
        for form in np.unique(forms).tolist():
            words, summed = self.same_form[form]
            here = forms == form
            if len(words):
                drawn[here] = words[np.searchsorted(summed, dice[here] * summed[-1], side="right").clip(max=len(words) - 1)]
        return np.where(drawn == slots // PARTS, -1, drawn)


@lru_cache(maxsize=2)
def word_table(folder: Path, senses: int | None = 1) -> WordTable:
    """From the files of WordNet; takes some seconds, once in a process."""
    related, counts, inflection = related_words(folder, senses), read_counts(folder), Inflection(folder)
    readings = _readings(related, counts, inflection)
    neighbours = _neighbours(folder, readings)
    builder = _Builder()
    for word in (*readings, *(word for side in neighbours for word in side)):
        builder.add(word)
    for word, parts in readings.items():
        for part, (base, forms, weight) in parts.items():
            builder.fill(word, part, base, forms, weight, related[part, base], inflection)
    return builder.finish(readings, neighbours)


Reading = tuple[str, frozenset[int], float]  # base form, numbers of the inflections that it may be, how often it is met
Readings = dict[str, dict[int, Reading]]


def _readings(related: Iterable[tuple[int, str]], counts: dict[tuple[int, str], int], inflection: Inflection) -> Readings:
    """Of each word as it stands in a text, by part of speech, the likeliest."""
    found: Readings = {}
    for part, base in related:
        if not base.isalpha() or len(base) < 2:
            continue
        forms: dict[str, set[int]] = {}
        for form, number in inflection.all_forms(part, base):
            forms.setdefault(form, set()).add(number)
        weight = (counts.get((part, base), 0) + UNSEEN) / len(forms)
        for form, numbers in forms.items():
            here = found.setdefault(form, {}) if form.isalpha() and form not in FUNCTION_WORDS else {}
            if part not in here or weight > here[part][2]:
                here[part] = base, frozenset(numbers), weight
    return found


Neighbours = dict[str, npt.NDArray[np.float64]]  # word → how often each part of speech stands beside it


def _neighbours(folder: Path, readings: Readings) -> tuple[Neighbours, Neighbours]:
    """What stands to the left and to the right of nouns, verbs, …: an example in WordNet shows a word of known part of speech."""
    left: Neighbours = {}
    right: Neighbours = {}
    for part, synsets in enumerate(read_synsets(folder)):
        for synset in synsets.values():
            for example in synset.examples:
                words = ["", *WORD.findall(example.lower()), ""]
                for place in range(1, len(words) - 1):
                    reading = readings.get(words[place], {}).get(part)
                    if reading is not None and reading[0] in synset.words:
                        for side, word in ((left, words[place - 1]), (right, words[place + 1])):
                            side.setdefault(word, np.zeros(PARTS))[part] += 1
    return left, right


class _Builder:
    def __init__(self) -> None:
        self.words: list[str] = []
        self.number: dict[str, int] = {}
        self.filled: dict[str, dict[int, list[int]]] = {kind: {} for kind in KINDS}
        self.forms: dict[int, tuple[int, frozenset[int]]] = {}
        self.members: dict[tuple[int, frozenset[int]], list[tuple[int, float]]] = {}

    def add(self, word: str) -> int:
        if word not in self.number:
            self.number[word] = len(self.words)
            self.words.append(word)
        return self.number[word]

    def fill(
        self, word: str, part: int, base: str, forms: frozenset[int], weight: float, related: Related, inflection: Inflection
    ) -> None:
        slot = self.number[word] * PARTS + part
        self.forms[slot] = part, forms
        if weight >= 1:
            self.members.setdefault((part, forms), []).append((self.number[word], weight))
        for kind in ("synonyms", "hypernyms", "antonyms"):
            inflected = (_in_forms(inflection.forms(part, other), forms) for other in getattr(related, kind) if len(other) > 1)
            found = dict.fromkeys(self.add(other) for other in inflected if other is not None and other != word)
            self.filled[kind][slot] = list(found)
        own = dict.fromkeys(form for form in inflection.forms(part, base) if form is not None and form != word)
        self.filled["inflections"][slot] = [self.add(form) for form in own]

    def finish(self, readings: Readings, neighbours: tuple[Neighbours, Neighbours]) -> WordTable:
        size = len(self.words)
        prior = np.full((size + 1, PARTS), -np.inf, dtype=np.float32)
        for word, parts in readings.items():
            for part, (_, _, weight) in parts.items():
                prior[self.number[word], part] = np.log(weight)
        known = {form: number for number, form in enumerate(dict.fromkeys(self.forms.values()))}
        form = np.full((size + 1) * PARTS, -1, dtype=np.int64)
        form[list(self.forms)] = [known[each] for each in self.forms.values()]
        members = [self.members.get(each, []) for each in known]
        same_form = [(np.array([w for w, _ in each], dtype=np.int64), np.cumsum([weight for _, weight in each])) for each in members]
        sides = [self._ratios(side, size) for side in neighbours]
        choices = {kind: Choices.of([filled.get(slot, []) for slot in range((size + 1) * PARTS)]) for kind, filled in self.filled.items()}
        return WordTable(self.words, self.number, prior, *sides, choices, form, same_form)

    def _ratios(self, side: Neighbours, size: int) -> Floats:
        usual = sum(side.values(), start=np.full(PARTS, UNSEEN))
        usual = usual / usual.sum()
        table = np.zeros((size + 2, PARTS), dtype=np.float32)
        for word, seen in side.items():
            place = self.number[word] if word else size + 1
            table[place] = np.log((seen + SMOOTHING * usual) / (seen.sum() + SMOOTHING) / usual)
        return table


def _in_forms(forms: tuple[str | None, ...], wanted: frozenset[int]) -> str | None:
    """The one form that is all of the wanted: "walked" is past and participle, so "went" cannot stand for it; "strolled" can."""
    found = {forms[number] if number < len(forms) else None for number in wanted}
    return found.pop() if len(found) == 1 else None
