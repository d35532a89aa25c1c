"""Pairs that a development set must not hold, whatever the order of their sides.

    key of a pair = {words of one side, words of the other}

Use it for scored pairs that choose a checkpoint: a pair that is in a test set as well makes the choice by the test.
``Protected`` (protected_sentences.py) is stricter and for training text: there one sentence is enough. A near copy of a
pair (one word changed) is not found by either.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from isotrope.data.compared_words import words_of
from isotrope.data.record_types import RECORD_TYPES
from isotrope.data.tables import check_file, format_of, header_of
from isotrope.data.text_lines import lines_of
from isotrope.errors import InputError

Place = str | os.PathLike[str]
Key = frozenset[str]
KNOWN = tuple(
    dict.fromkeys(
        names[:2] for name in ("scored-pairs", "labelled-pairs", "pairs") for names in RECORD_TYPES[name].known
    )
)  # the names of the two columns


class ProtectedPairs:
    """Pairs, and the sets each comes from."""

    def __init__(self, sets: Iterable[tuple[str, Iterable[Sequence[str]]]]) -> None:
        self.sets: dict[Key, set[str]] = {}
        self.sizes: Counter[str] = Counter()
        for name, pairs in sets:
            for pair in pairs:
                holders = self.sets.setdefault(key_of(pair), set())
                self.sizes[name] += name not in holders
                holders.add(name)
        if not self.sets:
            raise InputError("The files to protect hold no pair.")

    def texts_of(self, source: Path) -> Iterator[tuple[str, list[str]]]:
        return pair_lines(source)

    def leaking(self, rows: Sequence[Sequence[str]]) -> dict[int, set[str]]:
        """The sets that hold the pair of a row, by the number of the row."""
        keys = {number: key_of(pair) for number, pair in enumerate(rows) if pair}
        return {number: self.sets[key] for number, key in keys.items() if key in self.sets}


def key_of(pair: Sequence[str]) -> Key:
    return frozenset(" ".join(words_of(text)) for text in pair)


def holds_pairs(path: Place) -> bool:
    """Whether a file is a table with two columns of text under names that are known."""
    header = header_of(path) if format_of(Path(path)) == ".tsv" else None
    return header is not None and _pair_columns(header) is not None


def pair_lines(path: Place) -> Iterator[tuple[str, list[str]]]:
    """Every line of a .tsv file with the two texts of its pair; the header and blank lines have none."""
    source = check_file(path)
    if format_of(source) != ".tsv":
        raise InputError(f"{source}: pairs are looked for in .tsv files, plain or with .gz or .xz.")
    places: tuple[int, int] | None = None
    for number, line in lines_of(source):
        cells = line.split("\t")
        if places is None:
            places = _pair_columns(cells)
            if places is None:
                wanted = " or ".join("/".join(names) for names in KNOWN)
                raise InputError(f"{source}: columns found: {', '.join(map(repr, cells))}; pairs need {wanted}.")
            yield line, []
        elif not line.strip():
            yield line, []
        elif len(cells) <= max(places):
            raise InputError(f"{source}:{number}: {len(cells)} fields found, and the pair ends in {max(places) + 1}.")
        else:
            yield line, [cells[place] for place in places]


def _pair_columns(header: Sequence[str]) -> tuple[int, int] | None:
    lowered = [name.strip().lower() for name in header]
    found = next((names for names in KNOWN if all(name in lowered for name in names)), None)
    return None if found is None else (lowered.index(found[0]), lowered.index(found[1]))
