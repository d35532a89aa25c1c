"""English inflection: the forms of a base form, by rule and by WordNet's lists of exceptions."""

from __future__ import annotations

import re

from isotrope.lexicon.language import Forms
from isotrope.lexicon.wordnet import ADVERB, NOUN, PARTS_OF_SPEECH, VERB, WordNet

FORMS = (  # for each part of speech, the base form first
    ("base", "plural"),
    ("base", "third person", "ing", "past", "participle"),
    ("base", "comparative", "superlative"),
    ("base", "comparative", "superlative"),
)

_HISSING = re.compile(r"(s|x|z|ch|sh)$")
_CONSONANT_Y = re.compile(r"[^aeiou]y$")
_CONSONANT_O = re.compile(r"[^aeiou]o$")  # goes, vetoes; but woos, radios
_DOUBLED = re.compile(r"^[^aeiou]*(qu)?[aeiou][bdfgklmnprtvz]$")  # one syllable: stop, stopped; visit keeps its t
_SYLLABLES = re.compile(r"[aeiouy]+")
_STRONG = re.compile(r"ne?$|u[^aeiou]*$")  # taken, gone, sung: a participle that is not the past
_UNCHANGED = frozenset(  # what lists of exceptions cannot say: the past, or the plural, is the base form
    """bet broadcast burst bust cast cost cut forecast hit hurt let outlay put quit read reset rid set shed shut slit
    split spread thrust upset aircraft deer fish offspring salmon series sheep species trout""".split()
)
_AUXILIARIES: dict[str, Forms] = {
    "be": ("be", "is", "being", "was", "been"),
    "have": ("have", "has", "having", "had", "had"),
}


class EnglishInflection:
    """``forms(part, word)`` gives the forms of a base form in the order of ``FORMS``.

    Irregular forms come from WordNet's lists, all others from rules. A phrase inflects its first verb or its last noun.
    A noun without a plural gets one all the same ("gymnasticses"); docs/notes/own_code.md counts how often.
    """

    def __init__(self, wordnet: WordNet) -> None:
        self.irregular: list[dict[str, list[str]]] = [{} for _ in PARTS_OF_SPEECH]
        for part, known in enumerate(self.irregular):
            for form, base in wordnet.exceptions(part):
                if form != base:
                    known.setdefault(base, []).append(form)
        self.known: dict[tuple[int, str], Forms] = {}

    def forms(self, part: int, word: str) -> Forms:
        if (part, word) not in self.known:
            self.known[part, word] = self._forms(part, word)
        return self.known[part, word]

    def _forms(self, part: int, word: str) -> Forms:
        known = self.irregular[part].get(word, [])
        if " " in word and not known:
            head, rest = word.split(" ", 1) if part == VERB else word.rsplit(" ", 1)[::-1]
            joined = (
                f"{form} {rest}" if part == VERB else f"{rest} {form}"
                for form in self.forms(part, head)
                if form is not None
            )
            return tuple(joined) if part in (NOUN, VERB) else (word, None, None)
        if part == NOUN:
            return word, word if word in _UNCHANGED else known[0] if known else with_s(word)
        if part == VERB:
            return self._verb(word, known)
        return self._graded(word, known, part)

    def all_forms(self, part: int, word: str) -> set[tuple[str, int]]:
        """Each (form, number of the form), rarer irregular ones too: "indices" as well as "indexes"."""
        found = {(form, number) for number, form in enumerate(self.forms(part, word)) if form is not None}
        if part == NOUN:
            found |= {(form, 1) for form in self.irregular[part].get(word, [])}
        return found

    def _verb(self, word: str, known: list[str]) -> Forms:
        if word in _AUXILIARIES:
            return _AUXILIARIES[word]
        ing = next((form for form in known if form.endswith("ing")), with_ending(word, "ing"))
        third = f"{word}es" if _CONSONANT_O.search(word) else with_s(word)
        rest = [form for form in known if form not in (ing, third)]
        if not rest or word in _UNCHANGED:
            past = word if word in _UNCHANGED else with_ending(word, "ed")
            return word, third, ing, past, past
        strong = [form for form in rest if _STRONG.search(form)]
        weak = [form for form in rest if form not in strong]
        if strong and weak:
            return word, third, ing, weak[0], strong[0]
        if word + "d" == rest[0] or len(rest) > 1 or not _like_come(word, rest[0]):
            return word, third, ing, rest[0], rest[-1] if strong else rest[0]
        return word, third, ing, rest[0], word  # come, came, come; run, ran, run

    def _graded(self, word: str, known: list[str], part: int) -> Forms:
        """Long words take "more" and have no such forms; adverbs only the irregular ones, and "fast" and its like."""
        ends = [
            next((form for form in sorted(known, reverse=True) if form.endswith(end)), None)
            for end in (("r", "worse"), "t")
        ]
        if known and all(ends):
            return word, *ends
        syllables = len(_SYLLABLES.findall(word.removesuffix("e")))
        short = syllables == 1 or (syllables == 2 and word.endswith(("y", "ple", "tle", "dle", "ow")))
        if part == ADVERB or "-" in word or not short or word.endswith(("ed", "ing")):
            return word, None, None
        return word, with_ending(word, "er"), with_ending(word, "est")


def with_s(word: str) -> str:
    """The plural of a noun, the third person of a verb: cat, cats; box, boxes; city, cities."""
    if _HISSING.search(word):
        return f"{word}es"
    return f"{word[:-1]}ies" if _CONSONANT_Y.search(word) else f"{word}s"


def with_ending(word: str, ending: str) -> str:
    """-ed, -ing, -er, -est: make, making; try, tried, trying; stop, stopped; die, dying."""
    begins_with_e = ending.startswith("e")
    if word.endswith("ie") and not begins_with_e:
        return f"{word[:-2]}y{ending}"
    if word.endswith("e") and (begins_with_e or not word.endswith(("ee", "oe", "ye"))):
        return f"{word[:-1]}{ending}"
    if _CONSONANT_Y.search(word) and begins_with_e:
        return f"{word[:-1]}i{ending}"
    return f"{word}{word[-1]}{ending}" if _DOUBLED.match(word) else f"{word}{ending}"


def _like_come(word: str, past: str) -> bool:
    return past[-1] == word[-1] and word[-2:] in ("me", "un") and len(past) == len(word)
