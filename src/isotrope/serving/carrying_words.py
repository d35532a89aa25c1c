"""Which words carry the similarity of two texts: each is left out in turn.

    weight(w) = cos(a, b) − cos(a without w, b)

A positive weight: without the word the texts are less alike. It asks the model itself, so it holds for every encoder,
a table of word vectors included. Weights do not add up to the similarity: words lean on each other.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

WORDS = 40  # of a text that are left out in turn; the model reads the others as well
# A word, or one letter where words are written without blanks.
WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+(?:['’]\w+)*"
)


@dataclass(frozen=True)
class WordsLeftOut:
    """A text, where its words stand, and the text without each of them (those that leave something)."""

    text: str
    spans: tuple[tuple[int, int], ...]
    variants: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> WordsLeftOut:
        found = [match.span() for match in WORD.finditer(text)][:WORDS]
        kept = [((start, end), f"{text[:start]}{text[end:]}".strip()) for start, end in found]
        whole = [(span, variant) for span, variant in kept if WORD.search(variant)]
        return cls(text, tuple(span for span, _ in whole), tuple(variant for _, variant in whole))

    def pieces(self, weights: npt.NDArray[np.float64]) -> list[dict[str, Any]]:
        """The text in pieces: words with a weight, and what stands between them with none."""
        found: list[dict[str, Any]] = []
        place = 0
        for (start, end), weight in zip(self.spans, weights, strict=True):
            if start > place:
                found.append({"text": self.text[place:start], "weight": None})
            found.append({"text": self.text[start:end], "weight": round(float(weight), 4)})
            place = end
        if place < len(self.text):
            found.append({"text": self.text[place:], "weight": None})
        return found


def carried(first: WordsLeftOut, second: WordsLeftOut, vectors: npt.NDArray[np.float32]) -> dict[str, Any]:
    """``vectors``: of both texts, of the variants of the first, then of the second; all of unit length."""
    a, b = vectors[0], vectors[1]
    middle = 2 + len(first.variants)
    whole = float(a @ b)
    without_first = vectors[2:middle] @ b
    without_second = vectors[middle:] @ a
    return {
        "similarity": round(whole, 4),
        "first": first.pieces(whole - without_first.astype(np.float64)),
        "second": second.pieces(whole - without_second.astype(np.float64)),
    }
