"""Vectors from a text file: a word and its numbers a line, as GloVe, word2vec and fastText write them.

    the 0.418 0.24968 -0.41242 …

A first line with two counts (word2vec, fastText) is held against what follows. A word may have blanks (". . ." in
GloVe's largest file); no text can be cut into such words, so they are passed over.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from isotrope.data.corpus_files import is_number
from isotrope.data.packed_streams import opened, unpacking
from isotrope.data.text_lines import lines_of
from isotrope.errors import InputError
from isotrope.progress import bar

LINES = 5_000  # lines of a block
LOOK = 1 << 16  # bytes that tell a text from a binary file
HEADER = re.compile(r"(\d+) (\d+)")
Table = npt.NDArray[np.float32]


class Row(NamedTuple):
    """A line of the file; the numbers are as they are written."""

    line: int
    word: str
    numbers: str


def read_word_vectors(path: str | os.PathLike[str], before: int = 0) -> tuple[list[str], Table]:
    """The words, each once, and their vectors; ``before`` rows of zeros stand before the first.

    Of a word that stands twice the first vector is taken, and a warning says so. At its highest the memory is that of
    the table and of one block.
    """
    source = Path(path)
    _check_text(source)
    known: dict[str, int] = {}  # the line of each word
    blocks: list[Table] = []
    repeated: list[Row] = []
    with unpacking(source), bar("reading vectors", None) as advance:
        rows = rows_of(source)
        while block := list(islice(rows, LINES)):
            first = [row for row in block if known.setdefault(row.word, row.line) == row.line]
            repeated += [row for row in block if known[row.word] != row.line] if len(first) < len(block) else []
            if first:
                blocks.append(parse_numbers(first, source))
            advance(len(block))
    if not known:
        raise InputError(f"{source}: no vectors found.")
    if repeated:
        warnings.warn(
            f"{source}:{repeated[0].line}: '{repeated[0].word}' stood earlier in the file; the first vector of a word "
            f"is taken, {len(repeated):,} left out.",
            stacklevel=2,
        )
    return list(known), _joined(blocks, before)


def rows_of(source: Path) -> Iterator[Row]:
    """The lines of a file of vectors; each has as many numbers as the header, or the first line, has."""
    promised = width = found = 0
    for line, text in lines_of(source):
        text = text.rstrip(" ")
        if line == 1 and (header := HEADER.fullmatch(text)):
            promised, width = map(int, header.groups())
            continue
        if not text:
            continue
        word, _, numbers = text.partition(" ")
        count = numbers.count(" ") + 1 if numbers else 0
        if not width and 2 * sum(map(is_number, numbers.split(" "))) < count:  # prose
            raise InputError(f"{source}: this is a file, and line {line} is no word with its numbers behind it.")
        width = width or max(count, 1)
        if count != width:
            word = _long_word(text, width) or _ragged(source, line, count, width)
        found += 1
        if word and " " not in word:
            yield Row(line, word, numbers)
    if promised and found != promised:
        raise InputError(
            f"{source}: {found:,} vectors found, and the first line says {promised:,}; the file is cut short or "
            "damaged."
        )


def parse_numbers(rows: list[Row], source: Path) -> Table:
    """[rows, width], finite."""
    import pyarrow
    from pyarrow import csv

    # One column of numbers is what the reader of pyarrow is fastest at.
    text = "\n".join(row.numbers for row in rows).replace(" ", "\n").encode()
    try:
        column = csv.read_csv(
            pyarrow.py_buffer(text),
            csv.ReadOptions(column_names=["number"], block_size=1 << 22),
            csv.ParseOptions(delimiter="\t", quote_char=False, ignore_empty_lines=False),
            csv.ConvertOptions(column_types={"number": pyarrow.float32()}, null_values=[]),
        )["number"].to_numpy()
    except pyarrow.ArrowInvalid:
        column = np.concatenate([_parse_row(row, source) for row in rows])
    table = column.reshape(len(rows), -1)
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        raise InputError(f"{source}:{rows[int(finite.argmin())].line}: a number is not finite.")
    return table


def _parse_row(row: Row, source: Path) -> Table:
    parts = row.numbers.split(" ")
    odd = next((part for part in parts if not is_number(part)), None)
    if odd is not None:
        raise InputError(
            f"{source}:{row.line}: a word and numbers with single blanks between them were expected, "
            f"'{odd[:20]}' found behind '{row.word[:20]}'."
        )
    return np.array([float(part) for part in parts], dtype=np.float32)


def _long_word(text: str, width: int) -> str:
    """The word before the last ``width`` parts of a line; empty where there are none, or some of it are numbers."""
    parts = text.split(" ")
    word = parts[:-width]
    return " ".join(word) if len(word) > 1 and not any(map(is_number, word[1:])) else ""


def _ragged(source: Path, line: int, count: int, width: int) -> str:
    raise InputError(f"{source}:{line}: {count:,} numbers, {width:,} expected.")


def _joined(blocks: list[Table], before: int) -> Table:
    """One table; each block is given back as soon as it is copied."""
    table = np.empty((before + sum(map(len, blocks)), blocks[0].shape[1]), dtype=np.float32)
    table[:before], start = 0.0, before
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        table[start : start + len(block)] = block
        start += len(block)
    return table


def _check_text(source: Path) -> None:
    """Refuse at once what is something else: nothing, a binary file, a text."""
    with unpacking(source), opened(source) as file:
        begin = file.read(LOOK)
    if not begin.strip():
        raise InputError(f"{source}: the file is empty.")
    first, _, rest = begin.decode("utf-8", errors="replace").partition("\n")
    headed = HEADER.fullmatch(first.strip()) is not None
    if "\0" in first + rest or (headed and "\ufffd" in rest[:-1]):  # the last character may be cut
        raise InputError(
            f"{source}: this is a binary file; vectors are read from text. word2vec's binary format becomes text by "
            "gensim: KeyedVectors.load_word2vec_format(…, binary=True).save_word2vec_format(…)."
        )
    parts = (rest.partition("\n")[0] if headed else first).split()
    if headed and not rest.strip():
        raise InputError(f"{source}: no vectors found behind the first line.")
    if len(parts) < 2 or not is_number(parts[-1]):
        raise InputError(
            f"{source}: this is a file, and line {1 + headed} is no word with its numbers ('{' '.join(parts)[:40]}'); "
            "give a model's folder, or vectors as GloVe, word2vec or fastText write them."
        )
