"""A tokenizer of one id a word, for tests that need a corpus and no model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from isotrope.data.corpus_files import text_key

Flat = Callable[[list[str]], tuple[Any, Any]]


class HashTokenizer:
    """The id of a word is its key cut to the vocabulary. ``asked`` counts the texts it was given.

    ``flat``, where it is given, replaces the tokenizer's own: a test makes one that fails.
    """

    def __init__(self, vocabulary: int = 5000, name: str = "words", flat: Flat | None = None) -> None:
        self.vocabulary = vocabulary
        self.name = name
        self.asked = 0
        if flat is not None:
            self.flat = flat  # type: ignore[method-assign]

    def fingerprint(self) -> str:
        return self.name

    @property
    def blanks_count(self) -> bool:
        return False

    def opening(self, texts: list[str]) -> tuple[Any, Any]:
        return self.flat(texts)

    def following(self, texts: list[str]) -> tuple[Any, Any]:
        return self.flat(texts)

    def ids(self, text: str) -> list[int]:
        return [text_key(word.encode()) % self.vocabulary for word in text.split()]

    def flat(self, texts: list[str]) -> tuple[Any, Any]:
        self.asked += len(texts)
        rows = [self.ids(text) for text in texts]
        flat = np.array([number for row in rows for number in row], dtype=np.int32)
        return flat, np.array([len(row) for row in rows], dtype=np.int64)
