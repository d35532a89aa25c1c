"""Changes of a text as a person writes it: typos, case, punctuation, word order, and a negation.

    harmless           typos (two letters change places), case (capitals), punctuation (taken out)
    meaning-changing   word order (words shuffled), negation (a "not" put in, or taken out)

They work on text, for judging encoders; ``edits`` works on ids, for training. English, but for the first four on any
language with blanks between words. Word order is not always meaning: a shuffled list still says the same, so its effect
is read against the others, not against zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np

TYPO_SHARE = 0.2  # of the words
AUXILIARY = re.compile(
    r"\b(is|are|was|were|am|has|have|had|can|could|will|would|should|may|might|must|does|do|did)\b(\s+not\b)?",
    re.IGNORECASE,
)
PUNCTUATION = re.compile(r"[^\w\s]")
Change = Callable[[str, np.random.Generator], str]


def with_typos(text: str, share: float, rng: np.random.Generator) -> str:
    """Two neighbouring letters change places in a share of the words that have two."""
    words = text.split()
    for number, word in enumerate(words):
        if len(word) > 1 and rng.random() < share:
            place = int(rng.integers(len(word) - 1))
            words[number] = _swapped(word, place)
    return " ".join(words)


def typos(text: str, rng: np.random.Generator) -> str:
    """As ``with_typos`` with a fifth of the words, but in one word at least; equal letters are no typo."""
    damaged = with_typos(text, TYPO_SHARE, rng)
    if damaged != text:
        return damaged
    words = text.split()
    places = [(n, p) for n, word in enumerate(words) for p in range(len(word) - 1) if word[p] != word[p + 1]]
    if places:
        number, place = places[int(rng.integers(len(places)))]
        words[number] = _swapped(words[number], place)
    return " ".join(words)


def capitals(text: str, rng: np.random.Generator) -> str:
    return text.upper() if text.upper() != text else text.lower()


def unpunctuated(text: str, rng: np.random.Generator) -> str:
    """All marks become blanks; a text without any gets a full stop."""
    bare = " ".join(PUNCTUATION.sub(" ", text).split())
    return f"{text}." if not PUNCTUATION.search(text) else bare or text


def shuffled(text: str, rng: np.random.Generator) -> str:
    """The words in another order, where there is one; the last mark stays at the end."""
    words = text.split()
    end = words.pop() if len(words) > 1 and not any(letter.isalnum() for letter in words[-1]) else None
    if len(set(words)) < 2:
        return text
    order = words
    while order == words:
        order = [words[place] for place in rng.permutation(len(words))]
    return " ".join([*order, *([] if end is None else [end])])


def negated(text: str, rng: np.random.Generator) -> str:
    """ "is" → "is not" and "is not" → "is" at the first auxiliary verb; without one, "It is not true that" in front."""
    found = AUXILIARY.search(text)
    if found is None:
        first = text[:1].lower() if text[:2].istitle() or text[1:2].isspace() else text[:1]
        return f"It is not true that {first}{text[1:]}"
    verb = found[1]
    return text[: found.start()] + (verb if found[2] else f"{verb} not") + text[found.end() :]


HARMLESS: dict[str, Change] = {"typos": typos, "case": capitals, "punctuation": unpunctuated}
MEANING: dict[str, Change] = {"negation": negated, "word order": shuffled}


def _swapped(word: str, place: int) -> str:
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]
