"""Which lines of a training text hold a sentence that an encoder will be judged by.

Texts are compared without case, accents and punctuation. A line leaks when it equals a protected sentence, or a part of
one that is a sentence itself; a long protected sentence counts wherever it stands in a line.
"""

from __future__ import annotations

import gzip
import lzma
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from isotrope.data.sentences import split_sentences
from isotrope.data.tables import check_file, format_of, lines_of
from isotrope.errors import InputError
from isotrope.files import written_file
from isotrope.progress import bar

SHORTEST = 3  # words; anything shorter is not a sentence, and occurs in every text
INSIDE = 6  # words from which a sentence is looked for inside longer lines
EXAMPLES = 5
_CLITIC = re.compile(r" (n't|'\w+)\b")  # does n't → doesn't, as tokenized releases write it
_WORD = re.compile(r"\w+")


def words_of(text: str) -> list[str]:
    """What is compared: lower-cased words without accents and punctuation."""
    text = text.lower().replace("’", "'")
    if not text.isascii():
        text = "".join(letter for letter in unicodedata.normalize("NFKD", text) if not unicodedata.combining(letter))
    if "'" in text:
        text = _CLITIC.sub(r"\1", text).replace("'", "")
    return _WORD.findall(text)


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
    """Every line of a .txt or .tsv file with its texts; the header of a table has none."""
    source = check_file(path)
    if format_of(source) not in (".txt", ".tsv"):
        raise InputError(f"{source}: leaks are looked for in .txt and .tsv files, plain or with .gz or .xz.")
    table = format_of(source) == ".tsv"
    for number, line in lines_of(source):
        yield line, [] if table and number == 1 else line.split("\t") if table else [line]


def protect(files: Sequence[str | os.PathLike[str]]) -> Protected:
    """The sentences of all columns of some files; scores and labels are too short to be one."""
    if not files:
        raise InputError("No file to protect was given or found; name some as `against`, or a folder as `data_dir`.")
    return Protected((_plain_name(file), (cell for _, cells in cells_of(file) for cell in cells)) for file in files)


def find_leaks(
    sources: Sequence[str | os.PathLike[str]], protected: Protected, output: str | os.PathLike[str] | None = None
) -> LeakReport:
    """Look through ``sources``; with ``output``, write each of them without its leaking lines into that folder."""
    report = LeakReport(dict(protected.sizes))
    for source in map(Path, sources):
        if output is None:
            for _ in _clean_lines(source, protected, report):
                pass
            continue
        target = Path(output) / source.name
        if target.exists() and target.samefile(source):
            raise InputError(f"{source}: the clean copy would replace its source; give another folder as `output`.")
        with written_file(target) as temporary, _writer(temporary) as file:
            for line in _clean_lines(source, protected, report):
                file.write(line + "\n")
    return report


def _clean_lines(source: Path, protected: Protected, report: LeakReport) -> Iterator[str]:
    with bar(f"looking for leaks in {source.name}", None) as advance:
        for number, (line, cells) in enumerate(cells_of(source), 1):
            report.lines[source.name] += any(cells)
            found = [sentence for cell in cells for sentence in protected.found_in(cell)]
            if number % 1000 == 0:
                advance(1000)
            if not found:
                yield line
                continue
            holders = sorted({name for sentence in found for name in protected.sets[sentence]})
            report.leaks[source.name] += 1
            report.by_set.update(holders)
            if len(report.examples) < EXAMPLES:
                report.examples.append({"file": source.name, "line": number, "text": line[:200], "sets": holders})


def _writer(path: Path) -> IO[str]:
    opener: Any = {".gz": gzip.open, ".xz": lzma.open}.get(path.suffix.lower(), open)
    opened: IO[str] = opener(path, "wt", encoding="utf-8")
    return opened


def _plain_name(path: str | os.PathLike[str]) -> str:
    return Path(path).name.split(".tsv")[0].split(".txt")[0]
