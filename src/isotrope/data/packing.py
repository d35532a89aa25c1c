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

from isotrope.data.corpus_files import BLOCK, Tokenizer
from isotrope.data.record_types import Record
from isotrope.data.sources import read_sentences
from isotrope.errors import InputError
from isotrope.files import cache_folder, digest, file_digest, written_folder
from isotrope.progress import bar

HELD_EVERY = 200  # one document in so many is held out
TOO_FEW = (
    f"The text has {{}} documents, too few to hold one out; put a blank line between documents and bring {HELD_EVERY}."
)
Ids = npt.NDArray[np.int32]


class PackedText:
    """Rows [CLS] … [SEP] of ``length`` tokens, memory-mapped.

    ``held`` are rows of documents that training never sees.
    """

    def __init__(self, folder: Path) -> None:
        facts = json.loads((folder / "packed.json").read_text(encoding="utf-8"))
        self.fingerprint: str = facts["fingerprint"]
        self.documents: int = facts["documents"]
        self.sentences: int = facts["sentences"]
        self.train, self.held = (
            np.memmap(folder / name, dtype=facts["type"], mode="r").reshape(-1, facts["length"])
            for name in ("train", "held")
        )


def held_documents(documents: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.bool_]:
    """Which of these documents, ``count`` in all, are held out."""
    held: npt.NDArray[np.bool_] = documents % HELD_EVERY == HELD_EVERY - 1
    if not held.any():
        raise InputError(TOO_FEW.format(count))
    return held


def pack(
    sources: Sequence[str | os.PathLike[str]],
    tokenizer: Tokenizer,
    start: int,
    stop: int,
    length: int,
) -> PackedText:
    """Documents one after another with ``stop`` between them, cut into rows of ``length``; tokenized once.

    Each row begins with ``start`` and ends with ``stop``, and holds length − 2 tokens of text. A row may hold parts of
    several documents.
    """
    fingerprint = digest("packed-1", *(file_digest(source) for source in sources), tokenizer.fingerprint(), str(length))
    folder = cache_folder() / "packed" / fingerprint
    if not (folder / "packed.json").is_file():
        dtype = "<u2" if tokenizer.vocabulary <= 1 << 16 else "<i4"
        with written_folder(folder, whole="packed.json") as temporary:
            counts = _write(temporary, read_sentences(sources), tokenizer, start, stop, length, dtype)
            facts = {"fingerprint": fingerprint, "length": length, "type": dtype, **counts}
            (temporary / "packed.json").write_text(json.dumps(facts), encoding="utf-8")
    return PackedText(folder)


def _write(
    folder: Path, records: Iterable[Record], tokenizer: Tokenizer, start: int, stop: int, length: int, dtype: str
) -> dict[str, Any]:
    documents, sentences, last = 0, 0, -1
    with open(folder / "train", "wb") as train, open(folder / "held", "wb") as held, bar("packing", None) as advance:
        rows = {
            False: _Rows(train.write, start, stop, length, dtype),
            True: _Rows(held.write, start, stop, length, dtype),
        }
        iterator = iter(records)
        while block := list(islice(iterator, BLOCK)):
            ids, lengths = tokenizer.flat([record.texts[0] for record in block])
            ends = np.cumsum(lengths)
            first = 0
            for document, members in groupby(record.document for record in block):  # what a block has of a document
                count = sum(1 for _ in members)
                target = rows[document % HELD_EVERY == HELD_EVERY - 1]
                if document != last:
                    documents, last = documents + 1, document
                    target.add(np.array([stop], dtype=np.int32))
                target.add(ids[ends[first] - lengths[first] : ends[first + count - 1]])
                first += count
            sentences += len(block)
            for target in rows.values():
                target.flush()
            advance(len(block))
        if rows[False].written < 2:
            raise InputError(
                f"The text gives {rows[False].written} rows of {length} tokens; pre-training needs far more of it."
            )
        if documents < 2 or not rows[True].written:
            raise InputError(TOO_FEW.format(documents))
    return {"documents": documents, "sentences": sentences}


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
