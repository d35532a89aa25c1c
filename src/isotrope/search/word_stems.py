"""Stems: cancel, cancels and cancelled are one word for BM25, by Snowball's English stemmer (the library PyStemmer).

    cancelled, cancelling  →  cancel        cats  →  cat        ponies  →  poni

An index is stemmed as a whole, and its queries follow it. Where nobody says otherwise, the text decides: ten words that
other languages do not have are a tenth of the words of English sentences or more, and next to none elsewhere. A text
of other languages, or of names and codes alone, is compared as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from isotrope.errors import InputError, nearest
from isotrope.search.query_words import WORD

AUTO, ENGLISH, NONE = "auto", "english", "none"
STEMMERS = (AUTO, ENGLISH, NONE)
FREQUENT = frozenset("the of and to that with are this from which".split())
SHARE = 0.08  # of the words: English sentences have 0.10 to 0.23, eighteen other languages at most 0.03
SAMPLE, READ = 200, 2000  # texts, and characters of each, that decide


class Stems(dict[str, str]):
    """The stem of each word, made once. The library's object is for one thread, and so is this one."""

    def __init__(self, name: str) -> None:
        import Stemmer

        self._made = Stemmer.Stemmer(name, 0).stemWord  # 0: no cache of its own

    def __missing__(self, word: str) -> str:
        self[word] = found = self._made(word)
        return found


class Sample:
    """Texts spread evenly over all that were seen, however many come."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._seen, self._every = 0, 1

    def see(self, text: str) -> None:
        if self._seen % self._every == 0:
            self.texts.append(text[:READ])
        self._seen += 1
        if len(self.texts) > SAMPLE:
            self.texts = self.texts[::2]
            self._every *= 2


def check_stemmer(name: str) -> None:
    if name not in STEMMERS:
        raise InputError(f"Unknown stemmer '{name}'{nearest(name, STEMMERS)}", "stemmer")


def chosen_stemmer(name: str, texts: Iterable[str]) -> str:
    """What was asked for, or what fits the texts."""
    if name != AUTO:
        return name
    return ENGLISH if is_english(texts) else NONE


def stemming(name: str) -> Callable[[str], str]:
    """Word → what is compared. For one thread; a new one costs next to nothing."""
    return str if name == NONE else Stems(name).__getitem__


def is_english(texts: Iterable[str]) -> bool:
    """Whether most of the texts are English sentences. Accents stay: Vietnamese thể is not the."""
    words = [word for text in texts for word in WORD.findall(text.lower())]
    return sum(word in FREQUENT for word in words) > SHARE * len(words)
