"""Which base forms may stand for a word, and which say the contrary: WordNet's senses as plain lists."""

from __future__ import annotations

import re
from dataclasses import dataclass

from isotrope.lexicon.wordnet import Entry, WordNet

PLAIN = re.compile(r"[a-z]+(?:[ '-][a-z]+)*")  # names, figures and signs are not everyday words


@dataclass(frozen=True)
class Related:
    """Base forms related to a word of one part of speech, sorted."""

    synonyms: tuple[str, ...]
    hypernyms: tuple[str, ...]
    antonyms: tuple[str, ...]


def related_words(wordnet: WordNet, senses: int | None = None) -> dict[tuple[int, str], Related]:
    """By (part of speech, base form). For each word the ``senses`` most frequent senses count; None: all.

    Opposites are those of the word itself, not of its synonyms: "large" is opposed to "small", "big" to "little".
    """
    return {
        (entry.part, entry.word): _related(wordnet, entry)
        for entry in wordnet.entries(senses)
        if PLAIN.fullmatch(entry.word)
    }


def _related(wordnet: WordNet, entry: Entry) -> Related:
    synonyms = {other for synset in entry.senses for other in synset.words}
    hypernyms, antonyms = set[str](), set[str]()
    for synset in entry.senses:
        for part, offset in synset.above:
            found = wordnet.find(part, offset)
            hypernyms.update(found.words if found else ())
        for source, part, offset, place in synset.opposites:
            found = wordnet.find(part, offset) if source == entry.word else None
            antonyms.update(found.words[place : place + 1] if found else ())
    groups = (synonyms - {entry.word}, hypernyms - synonyms, antonyms - synonyms)
    return Related(*(tuple(sorted(word for word in group if PLAIN.fullmatch(word))) for group in groups))
