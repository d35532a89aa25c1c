"""WordNet's files and a language → the table of what may stand for each word; made once and kept in the cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from isotrope.data.cache_folders import is_whole, write_facts
from isotrope.files import cache_folder, digest, file_digest, written_folder
from isotrope.lexicon.english import ENGLISH
from isotrope.lexicon.language import Forms, Inflector, Language
from isotrope.lexicon.relations import Related, related_words
from isotrope.lexicon.word_table import PARTS, REPLACEMENTS, Choices, Floats, WordTable
from isotrope.lexicon.wordnet import WordNet, files_of
from isotrope.progress import bar

FORMAT = "words-6"
FACTS = "facts.json"  # written last: the checksums of the table's files
UNSEEN = 0.5  # the count of a reading that the tagged text does not have
SMOOTHING = 5.0  # examples that a neighbour must have to be believed half


@lru_cache(maxsize=2)
def open_lexicon(folder: Path, senses: int | None = 1, language: Language = ENGLISH) -> WordTable:
    """The table of a folder of WordNet's files, made on first use and found again afterwards.

    For each word the ``senses`` most frequent senses count; None: all. Making it takes some ten seconds.
    """
    fingerprint = digest(FORMAT, language.name, str(senses), *(file_digest(file) for file in files_of(folder)))
    kept = cache_folder() / "words" / fingerprint
    if not is_whole(kept / FACTS, str(folder), "table of words"):
        made = make_lexicon(folder, senses, language)
        with written_folder(kept, whole=FACTS) as temporary:
            made.save(temporary)
            write_facts(temporary / FACTS, {"format": FORMAT})
    return WordTable.load(kept)


def knows_words(table: WordTable, text: str) -> bool:
    """Whether a text has a word that could be replaced; False means that it is in another language."""
    found = [table.number[word] for word in ENGLISH.word.findall(text.lower()) if word in table.number]
    return bool(found) and bool(np.isfinite(table.prior[found]).any())


def make_lexicon(folder: Path, senses: int | None = 1, language: Language = ENGLISH) -> WordTable:
    wordnet = WordNet(folder)
    related, inflection = related_words(wordnet, senses), language.inflection(wordnet)
    readings = _readings(related, wordnet.counts(), inflection, language)
    neighbours = _neighbours(wordnet, readings, language)
    builder = _Builder(language, inflection)
    for word in (*readings, *(word for side in neighbours for word in side if word)):
        builder.add(word)
    with bar("reading WordNet", len(readings)) as advance:
        for word, parts in readings.items():
            for part, reading in parts.items():
                builder.fill(word, part, reading, related[part, reading.base])
            advance(1)
    return builder.finish(readings, neighbours)


class _Reading(NamedTuple):
    """A word of a text as one part of speech."""

    base: str
    forms: frozenset[int]  # numbers of the inflections that it may be
    weight: float  # how often it is met


_Readings = dict[str, dict[int, _Reading]]


def _readings(
    related: Iterable[tuple[int, str]],
    counts: Mapping[tuple[int, str], int],
    inflection: Inflector,
    language: Language,
) -> _Readings:
    """The likeliest reading of each word as it stands in a text, by part of speech."""
    found: _Readings = {}
    for part, base in related:
        if not base.isalpha() or len(base) < 2:
            continue
        forms: dict[str, set[int]] = {}
        for form, number in sorted(inflection.all_forms(part, base)):
            forms.setdefault(form, set()).add(number)
        weight = (counts.get((part, base), 0) + UNSEEN) / len(forms)
        for form, numbers in forms.items():
            if not form.isalpha() or form in language.function_words:
                continue
            here = found.setdefault(form, {})
            if part not in here or weight > here[part].weight:
                here[part] = _Reading(base, frozenset(numbers), weight)
    return found


_Neighbours = dict[str, npt.NDArray[np.float64]]  # word → how often each part of speech stands next to it


def _neighbours(wordnet: WordNet, readings: _Readings, language: Language) -> tuple[_Neighbours, _Neighbours]:
    """What stands to the left and to the right of nouns, verbs, …

    An example in WordNet shows a word of known part of speech.
    """
    left: _Neighbours = {}
    right: _Neighbours = {}
    for part, members in enumerate(wordnet.synsets):
        for synset in members.values():
            for example in synset.examples:
                words = ["", *language.word.findall(example.lower()), ""]
                for place in range(1, len(words) - 1):
                    reading = readings.get(words[place], {}).get(part)
                    if reading is not None and reading.base in synset.words:
                        for side, word in ((left, words[place - 1]), (right, words[place + 1])):
                            side.setdefault(word, np.zeros(PARTS))[part] += 1
    return left, right


class _Builder:
    """Numbers the words as they come, and collects what may fill each slot."""

    def __init__(self, language: Language, inflection: Inflector) -> None:
        self.language, self.inflection = language, inflection
        self.words: list[str] = []
        self.number: dict[str, int] = {}
        self.filled: dict[str, dict[int, list[int]]] = {name: {} for name in REPLACEMENTS}
        self.forms: dict[int, tuple[int, frozenset[int]]] = {}
        self.members: dict[tuple[int, frozenset[int]], list[tuple[int, float]]] = {}

    def add(self, word: str) -> int:
        if word not in self.number:
            self.number[word] = len(self.words)
            self.words.append(word)
        return self.number[word]

    def fill(self, word: str, part: int, reading: _Reading, related: Related) -> None:
        slot = self.number[word] * PARTS + part
        self.forms[slot] = part, reading.forms
        if reading.weight >= 1:
            self.members.setdefault((part, reading.forms), []).append((self.number[word], reading.weight))
        for name in ("synonyms", "hypernyms", "antonyms"):
            bases = (other for other in getattr(related, name) if len(other) > 1)
            inflected = (_in_forms(self.inflection.forms(part, other), reading.forms) for other in bases)
            found = dict.fromkeys(self.add(other) for other in inflected if other is not None and other != word)
            self.filled[name][slot] = list(found)
        if part in self.language.inflected:
            own = dict.fromkeys(form for form in self.inflection.forms(part, reading.base) if form and form != word)
            self.filled["inflections"][slot] = [self.add(form) for form in own]

    def finish(self, readings: _Readings, neighbours: tuple[_Neighbours, _Neighbours]) -> WordTable:
        size = len(self.words)
        prior = np.full((size + 1, PARTS), -np.inf, dtype=np.float32)
        for word, parts in readings.items():
            for part, reading in parts.items():
                prior[self.number[word], part] = np.log(reading.weight)
        known = {form: number for number, form in enumerate(dict.fromkeys(self.forms.values()))}
        form = np.full((size + 1) * PARTS, -1, dtype=np.int64)
        form[list(self.forms)] = [known[each] for each in self.forms.values()]
        listed = {known[each]: [word for word, _ in found] for each, found in self.members.items()}
        members = Choices.of(listed, len(known))
        order = sorted(self.members, key=lambda each: known[each])
        weights = np.cumsum([weight for each in order for _, weight in self.members[each]], dtype=np.float64)
        left, right = (self._ratios(side, size) for side in neighbours)
        choices = {name: Choices.of(filled, (size + 1) * PARTS) for name, filled in self.filled.items()}
        return WordTable(self.words, self.number, prior, left, right, choices, form, members, weights)

    def _ratios(self, side: _Neighbours, size: int) -> Floats:
        usual = sum(side.values(), start=np.full(PARTS, UNSEEN))
        usual = usual / usual.sum()
        table = np.zeros((size + 2, PARTS), dtype=np.float32)
        for word, seen in side.items():
            place = self.number[word] if word else size + 1
            table[place] = np.log((seen + SMOOTHING * usual) / (seen.sum() + SMOOTHING) / usual)
        return table


def _in_forms(forms: Forms, wanted: frozenset[int]) -> str | None:
    """The one form that is all of the wanted ones.

    "walked" is past and participle: "went" cannot stand for it, "strolled" can.
    """
    found = {forms[number] if number < len(forms) else None for number in wanted}
    return found.pop() if len(found) == 1 else None
