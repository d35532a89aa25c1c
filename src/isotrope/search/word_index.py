"""Search by words: BM25 by the library bm25s, over the words of query_words.

    score(q, d) = Σ_{t ∈ q} idf_t · tf / (tf + k₁ (1 − b + b · |d| / mean |d|)),   k₁ = 1.2, b = 0.75   (Lucene's)

The same weights rank in the judge (evaluation/bm25.py), which takes out English stop words and compares words as they
are; here nothing is taken out, and words of English are compared by their stems (word_stems.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.errors import InputError
from isotrope.search.query_words import Stem, words_of
from isotrope.search.word_postings import postings

K1, B = 1.2, 0.75
FACTS = "words.json"


class WordIndex:
    """BM25 scores of all texts, in a folder that is memory-mapped."""

    def __init__(self, model: Any, texts: int) -> None:
        self.model, self.texts = model, texts

    def scores(self, words: Iterable[str]) -> npt.NDArray[np.float32]:
        """[texts]; 0 where no word is shared. A word that the query repeats counts each time."""
        known = self._known(words)
        if not known:
            return np.zeros(self.texts, dtype=np.float32)
        return np.asarray(self.model.get_scores(known), dtype=np.float32)

    def scores_of(self, words: Iterable[str], texts: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """The same of a few texts: each word's texts stand in order, so these are looked up among them."""
        found = np.zeros(len(texts), dtype=np.float32)
        for word in self._known(words):
            number, columns = self.model.vocab_dict[word], self.model.scores
            start, end = columns["indptr"][number : number + 2]
            with_word = columns["indices"][start:end]
            places = np.minimum(np.searchsorted(with_word, texts), len(with_word) - 1)
            found += np.where(with_word[places] == texts, columns["data"][start:end][places], 0)
        return found

    def _known(self, words: Iterable[str]) -> list[str]:
        return [word for word in words if self.model is not None and word in self.model.vocab_dict]


def write_words(folder: Path, texts: Iterable[str], stem: Stem = str) -> None:
    """Into an empty folder; texts without a word are no error."""
    import bm25s

    vocabulary, scores = postings((words_of(text, stem) for text in texts), K1, B)
    (folder / FACTS).write_text(json.dumps({"texts": scores["num_docs"], "words": len(vocabulary)}), encoding="utf-8")
    if vocabulary:
        model = bm25s.BM25(method="lucene", k1=K1, b=B)
        model.scores, model.vocab_dict = scores, vocabulary
        model.nonoccurrence_array = None  # Lucene's form has none
        model.save(str(folder))


def open_words(folder: Path) -> WordIndex:
    import bm25s

    try:
        facts = json.loads((folder / FACTS).read_text(encoding="utf-8"))
        model = bm25s.BM25.load(str(folder), mmap=True) if facts["words"] else None
    except (OSError, ValueError, KeyError, TypeError, EOFError) as error:
        raise InputError(
            f"{folder}: the index of words is not as it was written; remove the index and build it again."
        ) from error
    return WordIndex(model, int(facts["texts"]))
