"""What grows with the lines of a text while a corpus is built, split and dealt out: some bytes a line, each of them
named here. Memory is counted by tracemalloc, which sees the arrays of numpy, so nothing here is timed or guessed.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hash_tokenizer import HashTokenizer

from isotrope import checksums
from isotrope.data import corpus_writer
from isotrope.data.batches import batches
from isotrope.data.corpus import open_corpus
from isotrope.data.corpus_files import Keys
from isotrope.data.distinct_keys import count_distinct
from isotrope.data.held_out import hold_out
from isotrope.data.record_types import record_type_named

FEW, MANY = 200_000, 600_000  # more than the blocks that anything is done in
SLACK = 200_000  # bytes: what does not grow differs a little from time to time


def peak_of(work: Callable[[], Any]) -> int:
    """Bytes held at the highest, above what was held before; once without counting, for what is imported then."""
    work()
    gc.collect()
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def growth(work: Callable[[int], Callable[[], Any]], few: int = FEW, many: int = MANY) -> float:
    """Bytes a line, from few lines to many."""
    at_few, at_many = (peak_of(work(lines)) for lines in (few, many))
    return (at_many - at_few - SLACK) / (many - few)


class Keyed(SimpleNamespace):
    """As much of a corpus as these look at; its arrays stand for mapped files."""

    def __len__(self) -> int:
        return len(self.keys)

    def text_keys(self, row: int) -> set[int]:
        return set(self.keys[row].tolist())

    def release(self) -> None:
        pass


def corpus_of(lines: int) -> Any:
    keys = np.random.default_rng(0).integers(0, 1 << 64, (lines, 1), dtype=np.uint64)
    counts = SimpleNamespace(documents=1)
    return Keyed(keys=keys, starts=np.zeros(1), counts=counts, record_type=record_type_named("sentences"))


def test_nothing_but_the_numbers_of_rows_grows_when_some_are_held_out() -> None:
    """Eight bytes are the rows that stay, one says whether a row does."""

    def work(lines: int) -> Callable[[], Any]:
        corpus = corpus_of(lines)
        return lambda: hold_out(corpus, 500, 0)

    assert growth(work) <= 9


def test_the_order_of_an_epoch_takes_four_bytes_a_row() -> None:
    def work(lines: int) -> Callable[[], Any]:
        corpus, rows = corpus_of(lines), np.arange(lines, dtype=np.int64)
        return lambda: next(batches("unique", corpus, rows, 64, 0, 0))

    assert growth(work) <= 4


def test_building_a_corpus_holds_a_block_of_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys are held to be counted; here in ranges of 1,024, in ranges of half a million otherwise."""
    counting = corpus_writer.count_distinct
    monkeypatch.setattr(corpus_writer, "count_distinct", lambda blocks, total: counting(blocks, total, 1024))
    monkeypatch.setattr(corpus_writer, "BLOCK", 512)

    def work(lines: int) -> Callable[[], Any]:
        text, numbers = tmp_path / f"{lines}.txt", iter(range(2))
        text.write_text("".join(f"line {number} of many\n" for number in range(lines)), encoding="utf-8")

        def built() -> None:  # in a cache of its own, or it would be found there
            monkeypatch.setenv("ISOTROPE_CACHE", str(tmp_path / f"{lines}-{next(numbers)}"))
            open_corpus(text, ["sentences"], HashTokenizer())

        return built

    assert growth(work, 4_000, 12_000) <= 1


def test_counting_keys_holds_one_range_of_them() -> None:
    def work(lines: int) -> Callable[[], Any]:
        keys = np.random.default_rng(0).integers(0, 1 << 64, lines, dtype=np.uint64)

        def blocks(size: int) -> Iterator[Keys]:
            yield from (keys[start : start + 1000] for start in range(0, lines, 1000))

        return lambda: count_distinct(blocks, lines, held=2000)

    assert growth(work) <= 0


def test_a_checksum_holds_no_more_than_a_block(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.write_bytes(bytes(range(256)) * 32_768)
    assert peak_of(lambda: checksums.sum_of(file)) < 2 * checksums._BLOCK
