"""The scores of BM25 as bm25s keeps them, made in little memory: texts are read once, and each block of them is sorted.

    idf_t = log(1 + (N − n_t + ½) / (n_t + ½))        score = idf_t · tf / (tf + k₁ (1 − b + b · |d| / mean |d|))

A block leaves its (word, text, count) in a file without a name, sorted by word. When all are read, n_t says where the
texts of each word stand, and the blocks are dealt out to these places in order. What stays in memory is eight bytes for
each word of each text, and four for each text; the library's own way holds lists of all words, and its sums twice.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import IO, Any

import numpy as np
import numpy.typing as npt

BLOCK = 4096  # texts
Numbers = npt.NDArray[np.int64]


@dataclass
class Read:
    """What is known when all texts are read: the number of each word, in how many texts it is, how long texts are."""

    vocabulary: dict[str, int] = field(default_factory=dict)
    frequencies: Numbers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    lengths: list[npt.NDArray[np.int32]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)  # of the blocks in the file
    texts: int = 0


def postings(texts: Iterable[Sequence[str]], k1: float, b: float) -> tuple[dict[str, int], dict[str, Any]]:
    """The number of each word, and the columns of scores by word: ``data``, ``indices`` (texts), ``indptr``."""
    with tempfile.TemporaryFile() as file:
        read = _read(texts, file)
        file.seek(0)
        return read.vocabulary, _dealt(read, file, k1, b)


def _read(texts: Iterable[Sequence[str]], file: IO[bytes]) -> Read:
    read = Read()
    for block in _blocks(texts):
        vocabulary = read.vocabulary
        ids = [[vocabulary.setdefault(word, len(vocabulary)) for word in words] for words in block]
        lengths = np.fromiter(map(len, ids), dtype=np.int32, count=len(ids))
        flat = np.fromiter(chain.from_iterable(ids), dtype=np.int64, count=int(lengths.sum()))
        cells, counts = np.unique(flat * len(ids) + np.repeat(np.arange(len(ids)), lengths), return_counts=True)
        words, places = np.divmod(cells, len(ids))
        np.stack([words, places + read.texts, counts]).astype("<i4").tofile(file)
        grown = np.bincount(words, minlength=len(vocabulary))
        grown[: len(read.frequencies)] += read.frequencies
        read.frequencies = grown
        read.lengths.append(lengths)
        read.sizes.append(len(cells))
        read.texts += len(ids)
    return read


def _dealt(read: Read, file: IO[bytes], k1: float, b: float) -> dict[str, Any]:
    lengths = np.concatenate(read.lengths) if read.lengths else np.zeros(0, dtype=np.int32)
    mean = float(lengths.mean()) if len(lengths) else 1.0
    weights = np.log(1 + (read.texts - read.frequencies + 0.5) / (read.frequencies + 0.5))
    borders = np.concatenate([[0], np.cumsum(read.frequencies)])
    data = np.empty(int(borders[-1]), dtype=np.float32)
    indices = np.empty(len(data), dtype=np.int32)
    free = borders[:-1].copy()  # the next place of each word
    for size in read.sizes:
        words, texts, counts = np.fromfile(file, "<i4", 3 * size).reshape(3, size)
        firsts = np.flatnonzero(np.diff(words, prepend=-1))
        runs = np.diff(np.append(firsts, size))
        places = free[words] + np.arange(size) - np.repeat(firsts, runs)
        indices[places] = texts
        data[places] = weights[words] * counts / (counts + k1 * (1 - b + b * lengths[texts] / mean))
        free[words[firsts]] += runs
    return {"data": data, "indices": indices, "indptr": borders.astype(np.int32), "num_docs": read.texts}


def _blocks(texts: Iterable[Sequence[str]]) -> Iterator[list[Sequence[str]]]:
    iterator = iter(texts)
    while block := list(islice(iterator, BLOCK)):
        yield block
