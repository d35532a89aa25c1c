"""WordNet's files → the table of what may stand for each word; made once and kept in the cache."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from isotrope.files import cache_folder, digest, file_digest, written_folder
from isotrope.lexicon.inflection import NOUN, VERB, Inflection
from isotrope.lexicon.word_table import KINDS, PARTS, Choices, Floats, WordTable
from isotrope.lexicon.wordnet import Related, Synset, files_of, read_counts, read_synsets, related_words
from isotrope.progress import bar

FORMAT = "words-3"
WORD = re.compile(r"[a-z]+|[0-9]+|[^\sa-z0-9]")  # of a text in small letters
UNSEEN = 0.5  # what a reading counts that the tagged text does not have
SMOOTHING = 5.0  # examples that a neighbour must have to be believed half
FUNCTION_WORDS = frozenset(
    "a about above across after again against all along although am among an and another any anybody anyone anything are around as at "
    "away be because been before behind being below beneath beside besides between beyond both but by can cannot could did do does "
    "doing don done down during each either else enough even ever every everybody everyone everything except few for from had has "
    "have having he her here hers herself him himself his how however i if in inside into is it its itself just least less lest like "
    "ll many may me might mine more most much must my myself near neither never no nobody none nor not nothing now of off on once one "
    "ones only onto or other others ought our ours ourselves out outside over per perhaps quite rather re same shall she should since "
    "so some somebody someone something such than that the their theirs them themselves then there therefore these they this those "
    "though through throughout thus till to together too toward towards two under unless until up upon us ve very was we were what "
    "whatever when whenever where whereas wherever whether which whichever while who whoever whom whose why will with within without "
    "would yes yet you your yours yourself yourselves".split()
)


@lru_cache(maxsize=2)
def open_lexicon(folder: Path, senses: int | None = 1) -> WordTable:
    """Of each word the ``senses`` most frequent senses count; None:

    all. Making it takes some ten seconds, finding it again none.
    """
    fingerprint = digest(FORMAT, str(senses), *(file_digest(file) for file in files_of(folder)))
    kept = cache_folder() / "words" / fingerprint
    if not (kept / "words.json").is_file():
        made = make_lexicon(folder, senses)
        with written_folder(kept, whole="words.json") as temporary:
            made.save(temporary)
    return WordTable.load(kept)


def knows_words(table: WordTable, text: str) -> bool:
    """Whether a text has a word that could be replaced."""
    found = [table.number[word] for word in WORD.findall(text.lower()) if word in table.number]
    return bool(found) and bool(np.isfinite(table.prior[found]).any())


def make_lexicon(folder: Path, senses: int | None = 1) -> WordTable:
    synsets = read_synsets(folder)
    related, inflection = related_words(folder, synsets, senses), Inflection(folder)
    readings = _readings(related, read_counts(folder), inflection)
    neighbours = _neighbours(synsets, readings)
    builder = _Builder()
    for word in (*readings, *(word for side in neighbours for word in side if word)):
        builder.add(word)
    with bar("reading WordNet", len(readings)) as advance:
        for word, parts in readings.items():
            for part, (base, forms, weight) in parts.items():
                builder.fill(word, part, base, forms, weight, related[part, base], inflection)
            advance(1)
    return builder.finish(readings, neighbours)


Reading = tuple[str, frozenset[int], float]  # base form, numbers of the inflections that it may be, how often it is met
Readings = dict[str, dict[int, Reading]]


def _readings(
    related: Iterable[tuple[int, str]], counts: dict[tuple[int, str], int], inflection: Inflection
) -> Readings:
    """Of each word as it stands in a text, by part of speech, the likeliest."""
    found: Readings = {}
    for part, base in related:
        if not base.isalpha() or len(base) < 2:
            continue
        forms: dict[str, set[int]] = {}
        for form, number in sorted(inflection.all_forms(part, base)):
            forms.setdefault(form, set()).add(number)
        weight = (counts.get((part, base), 0) + UNSEEN) / len(forms)
        for form, numbers in forms.items():
            here = found.setdefault(form, {}) if form.isalpha() and form not in FUNCTION_WORDS else {}
            if part not in here or weight > here[part][2]:
                here[part] = base, frozenset(numbers), weight
    return found


Neighbours = dict[str, npt.NDArray[np.float64]]  # word → how often each part of speech stands beside it


def _neighbours(synsets: list[dict[str, Synset]], readings: Readings) -> tuple[Neighbours, Neighbours]:
    """What stands to the left and to the right of nouns, verbs, …:

    an example in WordNet shows a word of known part of speech.
    """
    left: Neighbours = {}
    right: Neighbours = {}
    for part, members in enumerate(synsets):
        for synset in members.values():
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
        self,
        word: str,
        part: int,
        base: str,
        forms: frozenset[int],
        weight: float,
        related: Related,
        inflection: Inflection,
    ) -> None:
        slot = self.number[word] * PARTS + part
        self.forms[slot] = part, forms
        if weight >= 1:
            self.members.setdefault((part, forms), []).append((self.number[word], weight))
        for kind in ("synonyms", "hypernyms", "antonyms"):
            inflected = (
                _in_forms(inflection.forms(part, other), forms) for other in getattr(related, kind) if len(other) > 1
            )
            found = dict.fromkeys(self.add(other) for other in inflected if other is not None and other != word)
            self.filled[kind][slot] = list(found)
        if part in (NOUN, VERB):  # a rule for "bigger" would make "sixer" too
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
        members = Choices.of(
            {known[each]: [word for word, _ in found] for each, found in self.members.items()}, len(known)
        )
        order = sorted(self.members, key=lambda each: known[each])
        weights = np.cumsum([weight for each in order for _, weight in self.members[each]], dtype=np.float64)
        left, right = (self._ratios(side, size) for side in neighbours)
        choices = {kind: Choices.of(filled, (size + 1) * PARTS) for kind, filled in self.filled.items()}
        return WordTable(self.words, self.number, prior, left, right, choices, form, members, weights)

    def _ratios(self, side: Neighbours, size: int) -> Floats:
        usual = sum(side.values(), start=np.full(PARTS, UNSEEN))
        usual = usual / usual.sum()
        table = np.zeros((size + 2, PARTS), dtype=np.float32)
        for word, seen in side.items():
            place = self.number[word] if word else size + 1
            table[place] = np.log((seen + SMOOTHING * usual) / (seen.sum() + SMOOTHING) / usual)
        return table


def _in_forms(forms: tuple[str | None, ...], wanted: frozenset[int]) -> str | None:
    """The one form that is all of the wanted:

    "walked" is past and participle, so "went" cannot stand for it; "strolled" can.
    """
    found = {forms[number] if number < len(forms) else None for number in wanted}
    return found.pop() if len(found) == 1 else None
