"""Texts that are longer than an encoder reads: counted, so that nobody takes a vector for more than it saw.

    cut = |{t : tokens of t, special tokens counted > max_length}|

``Encoder.encode`` counts into the block that is open, and warns where none is; ``count_cut`` counts texts whose vectors
come from a cache. How many records training cuts is read off the corpus (training/opening.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING

from isotrope.progress import say

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder


class CutTextWarning(UserWarning):
    """Texts were cut, and nobody had asked for their number."""


@dataclass
class CutTexts:
    """How many of the texts were cut, and at how many tokens."""

    texts: int = 0
    cut: int = 0
    max_length: int = 0

    def add(self, texts: int, cut: int, max_length: int) -> None:
        self.texts, self.cut, self.max_length = self.texts + texts, self.cut + cut, max_length

    def __str__(self) -> str:
        return (
            f"{self.cut:,} of {self.texts:,} texts are longer than the model reads ({self.max_length:,} tokens) "
            "and were cut; split them into sentences to keep their ends."
        )

    def say(self) -> None:
        """One line of the log where some were cut."""
        if self.cut:
            say(str(self))


_open: ContextVar[CutTexts | None] = ContextVar("cut texts", default=None)


@contextmanager
def counting_cut() -> Iterator[CutTexts]:
    """Count what is encoded inside the block; a block around it does not count it again."""
    counted = CutTexts()
    token = _open.set(counted)
    try:
        yield counted
    finally:
        _open.reset(token)


def note_cut(texts: int, cut: int, max_length: int) -> None:
    """Add to the block that is open; where none is, warn the caller of ``encode``."""
    counted = _open.get()
    if counted is not None:
        counted.add(texts, cut, max_length)
    elif cut:
        warnings.warn(str(CutTexts(texts, cut, max_length)), CutTextWarning, stacklevel=3)


def count_cut(encoder: Encoder, texts: Sequence[str]) -> int:
    """How many of ``texts`` the encoder would cut. A token is a byte at least: short texts are not tokenized."""
    tokenizer = encoder.text_tokenizer
    room = encoder.max_length - len(tokenizer.start) - len(tokenizer.suffix)
    long = [text for text in (encoder.prompt + text for text in texts) if len(text.encode()) > room]
    return int((tokenizer.flat(long)[1] > room).sum()) if long else 0
