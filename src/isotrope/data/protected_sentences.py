"""Sentences that must not be trained on, and the lines that hold one.

A text is protected as a whole and sentence by sentence. A line leaks when it equals a protected sentence; one of six
words or more counts wherever it stands in a line. Both are compared by their words (``compared_words.py``). Many texts
are looked at in one call: a place of a text costs some arithmetic (``word_runs.py``), whatever the number of protected
sentences. ``ProtectedPairs`` (protected_pairs.py) is for scored pairs that choose between encoders.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from isotrope.data.compared_words import words_of
from isotrope.data.sentences import split_sentences
from isotrope.data.tables import check_file, format_of
from isotrope.data.text_lines import lines_of
from isotrope.data.word_runs import WIDTH, WordRuns
from isotrope.errors import InputError

SHORTEST = 3  # words; anything shorter is not a sentence, and occurs in every text


class Protected:
    """Sentences, and the sets each comes from."""

    def __init__(self, sets: Iterable[tuple[str, Iterable[str]]]) -> None:
        self.sets: dict[str, frozenset[str]] = {}  # sentence → names of the sets that hold it
        self.sizes: Counter[str] = Counter()
        nobody: frozenset[str] = frozenset()
        for name, texts in sets:
            joined: dict[frozenset[str], frozenset[str]] = {}  # with this set; one object for all that have the same
            for text in texts:
                for part in dict.fromkeys((text, *split_sentences(text))):
                    words = words_of(part)
                    if len(words) >= SHORTEST:
                        sentence = " ".join(words)
                        holders = self.sets.get(sentence, nobody)
                        if name not in holders:
                            self.sets[sentence] = joined.setdefault(holders, holders | {name})
                            self.sizes[name] += 1
        if not self.sets:
            raise InputError("The files to protect hold no sentence of three words or more.")
        self._runs = WordRuns(self.sets)

    def found_in(self, text: str) -> list[str]:
        """The protected sentences that ``text`` equals or holds."""
        return list(self.found_among([words_of(text)]).get(0, ()))

    def found_among(self, texts: Sequence[Sequence[str]]) -> dict[int, set[str]]:
        """The protected sentences that some texts, given as their words, equal or hold, by the number of the text."""
        found: dict[int, set[str]] = {}
        for number, words in enumerate(texts):
            if SHORTEST <= len(words) < WIDTH and (sentence := " ".join(words)) in self.sets:
                found[number] = {sentence}
        for number, run in self._runs.candidates(texts):
            if run in self.sets:
                found.setdefault(number, set()).add(run)
        return found

    def texts_of(self, source: Path) -> Iterator[tuple[str, list[str]]]:
        return cells_of(source)

    def leaking(self, rows: Sequence[Sequence[str]]) -> dict[int, set[str]]:
        """The sets with a sentence that a text of a row equals or holds, by the number of the row."""
        return self.holders([[words_of(text) for text in row] for row in rows])

    def holders(self, rows: Sequence[Sequence[Sequence[str]]]) -> dict[int, set[str]]:
        """As ``leaking``, for texts that are given as their words."""
        owners = [number for number, row in enumerate(rows) for _ in row]
        found: dict[int, set[str]] = {}
        for number, sentences in self.found_among([words for row in rows for words in row]).items():
            found.setdefault(owners[number], set()).update(*(self.sets[sentence] for sentence in sentences))
        return found


def cells_of(path: str | os.PathLike[str]) -> Iterator[tuple[str, list[str]]]:
    """Every line of a .txt or .tsv file with its texts; the header of a table has none.

    A cell of a table without a blank (``main-news/headlines``, ``4.2``) is a name or a number, not a text.
    """
    source = check_file(path)
    if format_of(source) not in (".txt", ".tsv"):
        raise InputError(f"{source}: leaks are looked for in .txt and .tsv files, plain or with .gz or .xz.")
    if format_of(source) == ".txt":
        for _, line in lines_of(source):
            yield line, [line]
        return
    for number, line in lines_of(source):
        cells = line.split("\t") if number > 1 else []
        yield line, [cell for cell in cells if " " in cell or not cell.isascii()]
