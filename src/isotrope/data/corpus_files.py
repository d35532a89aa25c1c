"""The files of a corpus: their layout, what is counted, and the keys by which texts are compared.

``corpus_writer`` makes them and ``Corpus`` reads them. Raise ``FORMAT`` when the layout changes: the cache finds a
folder by it.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from isotrope.data.record_types import RecordType

FORMAT = "5"
BLOCK = 4_096  # records tokenized in one call; more is no quicker
Keys = npt.NDArray[np.uint64]


class Tokenizer(Protocol):
    """What a corpus asks of a tokenizer; ``TextTokenizer`` is one."""

    @property
    def vocabulary(self) -> int: ...
    @property
    def blanks_count(self) -> bool:
        """Whether a text that follows another has other ids than one that begins a row."""

    def fingerprint(self) -> str: ...
    def opening(self, texts: list[str]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """All ids of texts that begin a row, one after another, and the length of each text."""

    def following(self, texts: list[str]) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """The same of texts that another stands before."""


@dataclass(frozen=True)
class Counts:
    """What a file held. ``duplicates`` are records whose texts all stood earlier in the file."""

    records: int
    empty: int
    duplicates: int
    distinct: int
    documents: int

    def __str__(self) -> str:
        return (
            f"{self.records:,} records, {self.duplicates:,} duplicates (kept, never two in one batch), "
            f"{self.empty:,} empty lines, {self.documents:,} documents"
        )


def layout_of(record_type: RecordType, id_type: str, running: bool) -> dict[str, str]:
    """The files of the cache and the dtype of the numbers in each.

    ``running``: the texts have a second form, behind the one before them in their document.
    """
    layout = {
        "ids": id_type,
        "id_ends": "<i8",
        "text": "u1",
        "text_ends": "<i8",
        "keys": "<u8",
        "documents": "<i8",
        "starts": "<i8",
    }
    if running:
        layout |= {"running": id_type, "running_ends": "<i8"}
    if record_type.value is not None:
        layout["values"] = "<i4"
        if record_type.extra:
            layout |= {"others": "<i4", "other_ends": "<i8"}
        if record_type.types:
            layout["types"] = "<i4"
        if record_type.pages:
            layout["pages"] = "<i4"
    return layout


def is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def text_key(raw: bytes) -> int:
    """64 bits that stand for a text: equal texts have equal keys, in every process."""
    return int.from_bytes(hashlib.blake2b(raw, digest_size=8).digest(), "little")


def combined(keys: Keys) -> Keys:
    """One key a record."""
    result = keys[:, 0].copy()
    for column in range(1, keys.shape[1]):
        result = result * np.uint64(0x9E3779B97F4A7C15) + keys[:, column]
    return result


def whole_keys(keys: Keys, values: npt.NDArray[np.int32]) -> Keys:
    """[records, 1]: one key for the texts of a record and what it carries."""
    return combined(np.column_stack([keys, values.astype(np.uint64)]))[:, None]
