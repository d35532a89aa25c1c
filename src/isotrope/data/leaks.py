"""Which lines of a text hold a sentence, or are a pair, that an encoder will be judged by.

In training text (``Protected``) a line leaks when it holds a protected sentence. Among scored pairs that choose between
encoders (``ProtectedPairs``) a row leaks when its two sides are a protected pair, in either order. The text is looked
at block by block, so memory is that of what is protected.
"""

from __future__ import annotations

import gzip
import lzma
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

from isotrope.data.prose_text import origin
from isotrope.data.protected_pairs import ProtectedPairs, pair_lines
from isotrope.data.protected_sentences import Protected, cells_of
from isotrope.data.record_blocks import record_blocks
from isotrope.errors import InputError
from isotrope.files import check_overwrite, written_file
from isotrope.progress import bar

EXAMPLES = 5
MATCHES = ("sentence", "pair")
QUICK = 1  # preset of .xz: eight times as fast as the usual one, for files that are three tenths larger
Row = tuple[str, list[str]]  # a line, and its texts


class Guard(Protocol):
    """What must not be found: sentences or pairs, with the sets each comes from."""

    sizes: Counter[str]

    def texts_of(self, source: Path) -> Iterator[Row]: ...
    def leaking(self, rows: Sequence[Sequence[str]]) -> Mapping[int, Set[str]]: ...


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
    before = 0
    with bar(f"looking for leaks in {source.name}", None) as advance:
        for block in record_blocks(protected.texts_of(source), lambda row: len(row[0])):
            report.lines[source.name] += sum(any(map(str.strip, texts)) for _, texts in block)
            leaking = protected.leaking([texts for _, texts in block])
            for place, (line, _) in enumerate(block):
                if place not in leaking:
                    yield line
                    continue
                holders = sorted(leaking[place])
                report.leaks[source.name] += 1
                report.by_set.update(holders)
                if len(report.examples) < EXAMPLES:
                    number = before + place + 1
                    file, number = origin(source, number) or (source.name, number)
                    report.examples.append({"file": file, "line": number, "text": line[:200], "sets": holders})
            before += len(block)
            advance(len(block))
    if not report.lines[source.name]:
        raise InputError(f"{source}: no text found.")


def _check_given(files: Sequence[str | os.PathLike[str]]) -> None:
    if not files:
        raise InputError("No file to protect was given or found; name some as `against`, or a folder as `data_dir`.")


def _writer(path: Path) -> IO[str]:
    suffix = path.suffix.lower()
    if suffix == ".xz":
        return lzma.open(path, "wt", encoding="utf-8", preset=QUICK)
    opener: Any = gzip.open if suffix == ".gz" else open
    opened: IO[str] = opener(path, "wt", encoding="utf-8")
    return opened


def _plain_name(path: str | os.PathLike[str]) -> str:
    return Path(path).name.split(".tsv")[0].split(".txt")[0]
