"""Running text as rows of equal length, without a token of padding: what pre-training reads."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.checksums import damage
from isotrope.data.cache_folders import FILES, is_whole, unsealed, write_facts
from isotrope.data.corpus_files import BLOCK, Tokenizer
from isotrope.data.record_types import Record
from isotrope.data.sources import read_sentences
from isotrope.data.tables import check_file, content_of
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, written_folder
from isotrope.progress import bar

FACTS = "packed.json"
HELD_EVERY = 200  # one document in so many is held out
HELD_SEED = 0  # every run over the same files holds out the same documents
NONE_HELD = "No document can be held out, for no file has two; put a blank line between documents, or bring more text."
Ids = npt.NDArray[np.int32]


class PackedText:
    """Rows [CLS] … [SEP] of ``length`` tokens, memory-mapped.

    ``held`` are rows of documents that training never sees.
    """

    def __init__(self, folder: Path) -> None:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        self.fingerprint: str = facts["fingerprint"]
        self.documents: int = facts["documents"]
        self.sentences: int = facts["sentences"]
        self.train, self.held = (
            np.memmap(folder / name, dtype=facts["type"], mode="r").reshape(-1, facts["length"])
            for name in ("train", "held")
        )


def files_of_documents(sources: Sequence[str | os.PathLike[str]]) -> npt.NDArray[np.int64]:
    """[documents]: the number of the file that each document stands in."""
    counts = [sum(1 for _ in groupby(record.document for record in read_sentences([source]))) for source in sources]
    return np.repeat(np.arange(len(counts)), counts)


def held_documents(files: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which documents are held out, given the file of each: one in 200 of every file, drawn at random, at least one.

    A file of one document is left to training.
    """
    held = np.zeros(len(files), dtype=np.bool_)
    rng = np.random.default_rng(HELD_SEED)
    for file in np.unique(files):
        own = np.flatnonzero(files == file)
        if len(own) > 1:
            held[rng.choice(own, max(round(len(own) / HELD_EVERY), 1), replace=False)] = True
    if not held.any():
        raise InputError(NONE_HELD)
    return held


def sample_rows(count: int, most: int) -> npt.NDArray[np.int64]:
    """At most ``most`` of ``count`` held-out rows, the same each time: from all files, in the order of the text."""
    return np.sort(np.random.default_rng(HELD_SEED).permutation(count)[:most])


def pack(
    sources: Sequence[str | os.PathLike[str]],
    tokenizer: Tokenizer,
    start: int,
    stop: int,
    length: int,
) -> PackedText:
    """Documents one after another with ``stop`` between them, cut into rows of ``length``; tokenized once.

    Each row begins with ``start`` and ends with ``stop``, and holds length − 2 tokens of text. A row may hold parts of
    several documents. A folder that was packed before, on another machine perhaps, is taken as it is.
    """
    reader = digest(tokenizer.fingerprint(), str((start, stop, length)))
    if is_packed(sources):
        return _packed_before(Path(sources[0]), reader)
    contents = [content_of(check_file(source)) for source in sources]
    fingerprint = digest("packed-3", *contents, tokenizer.fingerprint(), str((start, stop, length)))
    folder = cache_folder() / "packed" / fingerprint
    if not is_whole(folder / FACTS, ", ".join(map(str, sources))):
        dtype = "<u2" if tokenizer.vocabulary <= 1 << 16 else "<i4"
        with written_folder(folder, whole=FACTS) as temporary:
            held = held_documents(files_of_documents(sources))
            counts = _write(temporary, read_sentences(sources, contents), held, tokenizer, start, stop, length, dtype)
            facts = {"fingerprint": fingerprint, "length": length, "type": dtype, "reader": reader, **counts}
            write_facts(temporary / FACTS, facts)
    return PackedText(folder)


def is_packed(sources: Sequence[str | os.PathLike[str]]) -> bool:
    """Whether a folder of packed rows is given in place of texts."""
    return len(sources) == 1 and (Path(sources[0]) / FACTS).is_file()


def _packed_before(folder: Path, reader: str) -> PackedText:
    """Nothing of a damaged one is taken away: it is somebody's copy, not our cache."""
    try:
        facts = unsealed(json.loads((folder / FACTS).read_text(encoding="utf-8")))
        wrong = damage(folder, facts.get(FILES))
    except (OSError, ValueError) as error:
        facts, wrong = {}, f"{FACTS} is {error}"
    if wrong is not None:
        raise InputError(f"{folder}: the packed text is damaged ({wrong}); copy it again.")
    if facts.get("reader") != reader:
        raise InputError(f"{folder}: these rows were packed with another vocabulary or length; pack the texts again.")
    return PackedText(folder)


def _write(
    folder: Path,
    records: Iterable[Record],
    held: npt.NDArray[np.bool_],
    tokenizer: Tokenizer,
    start: int,
    stop: int,
    length: int,
    dtype: str,
) -> dict[str, Any]:
    documents, sentences, last = 0, 0, -1
    with open(folder / "train", "wb") as train, open(folder / "held", "wb") as aside, bar("packing", None) as advance:
        rows = {
            False: _Rows(train.write, start, stop, length, dtype),
            True: _Rows(aside.write, start, stop, length, dtype),
        }
        iterator = iter(records)
        while block := list(islice(iterator, BLOCK)):
            begins = np.diff([record.document for record in block], prepend=last) != 0
            for begin, ids in zip(begins, _running(block, begins, tokenizer), strict=True):
                documents += int(begin)
                target = rows[bool(held[documents - 1])]
                target.add(np.array([stop] if begin else [], dtype=np.int32))
                target.add(ids)
            sentences, last = sentences + len(block), block[-1].document
            for target in rows.values():
                target.flush()
            advance(len(block))
        if rows[False].written < 2:
            raise InputError(
                f"The text gives {rows[False].written} rows of {length} tokens; pre-training needs far more of it."
            )
        if not rows[True].written:
            raise InputError(f"The held-out documents fill no row of {length} tokens; bring more text.")
    return {"documents": documents, "sentences": sentences}


def _running(block: Sequence[Record], begins: npt.NDArray[np.bool_], tokenizer: Tokenizer) -> list[Ids]:
    """The ids of each sentence: those that begin a document, and those behind another."""
    found: list[Ids] = [np.empty(0, dtype=np.int32)] * len(block)
    for places, tokenized in ((begins, tokenizer.opening), (~begins, tokenizer.following)):
        numbers = np.flatnonzero(places).tolist()
        ids, lengths = tokenized([block[number].texts[0] for number in numbers])
        for number, part in zip(numbers, np.split(ids, np.cumsum(lengths)[:-1]), strict=False):
            found[number] = part
    return found


class _Rows:
    """Tokens that come piece by piece, written as whole rows."""

    def __init__(self, write: Callable[[bytes], Any], start: int, stop: int, length: int, dtype: str) -> None:
        self.write, self.start, self.stop, self.body, self.dtype = write, start, stop, length - 2, dtype
        self.waiting: list[Ids] = []
        self.written = 0

    def add(self, ids: Ids) -> None:
        self.waiting.append(ids)

    def flush(self) -> None:
        if not self.waiting:
            return
        flat = np.concatenate(self.waiting)
        count = len(flat) // self.body
        rows = np.empty((count, self.body + 2), dtype=self.dtype)
        rows[:, 0], rows[:, -1] = self.start, self.stop
        rows[:, 1:-1] = flat[: count * self.body].reshape(count, self.body)
        self.write(rows.tobytes())
        self.waiting = [flat[count * self.body :]]
        self.written += count
