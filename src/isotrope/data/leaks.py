"""Which lines of a text hold a sentence, or are a pair, that an encoder will be judged by.

Texts are compared by their words (``compared_words.py``). In training text (``Protected``) a line leaks when it equals
a protected sentence, or a part of one that is a sentence itself; a long protected sentence counts wherever it stands in
a line. Among scored pairs that choose between encoders (``ProtectedPairs``) a row leaks when its two sides are a
protected pair, in either order. The time grows with the text, not with text times protected sentences: a line is held
against those sentences alone whose rarest word it has.
"""

from __future__ import annotations

import gzip
import lzma
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from isotrope.data.compared_words import words_of
from isotrope.data.protected_pairs import ProtectedPairs, pair_lines
from isotrope.data.sentences import split_sentences
from isotrope.data.tables import check_file, format_of
from isotrope.data.text_lines import lines_of
from isotrope.errors import InputError
from isotrope.files import check_overwrite, written_file
from isotrope.progress import bar

SHORTEST = 3  # words; anything shorter is not a sentence, and occurs in every text
INSIDE = 6  # words from which a sentence is looked for inside longer lines
EXAMPLES = 5
MATCHES = ("sentence", "pair")


class Guard(Protocol):
    """What must not be found: sentences or pairs, with the sets each comes from."""

    sizes: Counter[str]

    def texts_of(self, source: Path) -> Iterator[tuple[str, list[str]]]: ...
    def holders(self, texts: Sequence[str]) -> set[str]: ...


class Protected:
    """Sentences that must not be trained on, and the sets each comes from."""

    def __init__(self, sets: Iterable[tuple[str, Iterable[str]]]) -> None:
        self.sets: dict[str, set[str]] = {}  # sentence → names of the sets that hold it
        self.sizes: Counter[str] = Counter()
        for name, texts in sets:
            for text in texts:
                for part in (text, *split_sentences(text)):
                    words = words_of(part)
                    if len(words) >= SHORTEST:
                        holders = self.sets.setdefault(" ".join(words), set())
                        self.sizes[name] += name not in holders
                        holders.add(name)
        if not self.sets:
            raise InputError("The files to protect hold no sentence of three words or more.")
        frequency = Counter(word for sentence in self.sets for word in sentence.split())
        self._anchors: dict[str, list[str]] = {}  # its rarest word → the long sentences to look for
        for sentence in self.sets:
            words = sentence.split()
            if len(words) >= INSIDE:
                self._anchors.setdefault(min(words, key=lambda word: (frequency[word], word)), []).append(sentence)

    def found_in(self, text: str) -> list[str]:
        """The protected sentences that ``text`` equals or holds."""
        words = words_of(text)
        joined = " ".join(words)
        found = [joined] if joined in self.sets else []
        padded = f" {joined} "
        for word in self._anchors.keys() & set(words):
            found += [sentence for sentence in self._anchors[word] if f" {sentence} " in padded and sentence != joined]
        return found

    def texts_of(self, source: Path) -> Iterator[tuple[str, list[str]]]:
        return cells_of(source)

    def holders(self, texts: Sequence[str]) -> set[str]:
        """The sets with a sentence that one of ``texts`` equals or holds."""
        return {name for text in texts for sentence in self.found_in(text) for name in self.sets[sentence]}


@dataclass
class LeakReport:
    """Lines that leak, by file of the training text and by protected set (a line may leak from several)."""

    protected: dict[str, int]
    lines: Counter[str] = field(default_factory=Counter)
    leaks: Counter[str] = field(default_factory=Counter)
    by_set: Counter[str] = field(default_factory=Counter)
    examples: list[dict[str, Any]] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        counts = {name: dict(getattr(self, name)) for name in ("protected", "lines", "leaks", "by_set")}
        return {**counts, "examples": self.examples}

    def rows(self) -> list[dict[str, Any]]:
        return [
            {"text": name, "lines": f"{self.lines[name]:,}", "leaks": f"{self.leaks[name]:,}"} for name in self.lines
        ]


def cells_of(path: str | os.PathLike[str]) -> Iterator[tuple[str, list[str]]]:
    """Every line of a .txt or .tsv file with its texts; the header of a table has none.

    A cell of a table without a blank (``main-news/headlines``, ``4.2``) is a name or a number, not a text.
    """
    source = check_file(path)
    if format_of(source) not in (".txt", ".tsv"):
        raise InputError(f"{source}: leaks are looked for in .txt and .tsv files, plain or with .gz or .xz.")
    table = format_of(source) == ".tsv"
    for number, line in lines_of(source):
        cells = line.split("\t") if table and number > 1 else []
        yield line, [cell for cell in cells if " " in cell or not cell.isascii()] if table else [line]


def protect(files: Sequence[str | os.PathLike[str]]) -> Protected:
    """The sentences of all columns of some files; scores and labels are too short to be one."""
    _check_given(files)
    return Protected((_plain_name(file), (cell for _, cells in cells_of(file) for cell in cells)) for file in files)


def protect_pairs(files: Sequence[str | os.PathLike[str]]) -> ProtectedPairs:
    """The pairs of some tables."""
    _check_given(files)
    return ProtectedPairs((_plain_name(file), (pair for _, pair in pair_lines(file) if pair)) for file in files)


def find_leaks(
    sources: Sequence[str | os.PathLike[str]], protected: Guard, output: str | os.PathLike[str] | None = None
) -> LeakReport:
    """Look through ``sources``; with ``output``, write each of them without its leaking lines into that folder."""
    if output is not None:
        check_copies(sources, (), output)
    report = LeakReport(dict(protected.sizes))
    with ExitStack() as copies:  # all of them take their names at the end, or none
        for source in map(Path, sources):
            if output is None:
                for _ in _clean_lines(source, protected, report):
                    pass
                continue
            temporary = copies.enter_context(written_file(Path(output) / source.name))
            with _writer(temporary) as file:
                for line in _clean_lines(source, protected, report):
                    file.write(line + "\n")
    return report


def check_copies(
    sources: Sequence[str | os.PathLike[str]],
    against: Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str],
) -> None:
    """Refuse clean copies that would replace one another, or a file that is read."""
    names = Counter(Path(source).name for source in sources)
    for name, count in names.items():
        if count > 1:
            raise InputError(f"{count} texts are called {name}, and so would be their clean copies; rename them.")
        check_overwrite(Path(output) / name, *sources, *against)


def _clean_lines(source: Path, protected: Guard, report: LeakReport) -> Iterator[str]:
    with bar(f"looking for leaks in {source.name}", None) as advance:
        for number, (line, texts) in enumerate(protected.texts_of(source), 1):
            report.lines[source.name] += any(text.strip() for text in texts)
            if number % 1000 == 0:
                advance(1000)
            holders = sorted(protected.holders(texts))
            if not holders:
                yield line
                continue
            report.leaks[source.name] += 1
            report.by_set.update(holders)
            if len(report.examples) < EXAMPLES:
                report.examples.append({"file": source.name, "line": number, "text": line[:200], "sets": holders})
    if not report.lines[source.name]:
        raise InputError(f"{source}: no text found.")


def _check_given(files: Sequence[str | os.PathLike[str]]) -> None:
    if not files:
        raise InputError("No file to protect was given or found; name some as `against`, or a folder as `data_dir`.")


def _writer(path: Path) -> IO[str]:
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix.lower(), open)
    opened: IO[str] = opener(path, "wt", encoding="utf-8")
    return opened


def _plain_name(path: str | os.PathLike[str]) -> str:
    return Path(path).name.split(".tsv")[0].split(".txt")[0]
