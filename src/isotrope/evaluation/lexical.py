"""Shared words without an encoder: the TF-IDF ranking that an encoder is to be read against.

    x_t = (1 + log tf_t) · idf_t over the words of the documents, without English stop words; cosine

An encoder that does not beat it adds nothing to shared words on that text. ``bm25`` weighs words by the length of a
document as well, and is the stronger one where documents are long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.data.word_marks import MARKS

TITLE = "TF-IDF"
DESCRIPTION = "scikit-learn's TF-IDF, sublinear, English stop words"

HAN = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"  # scripts without spaces: a character is a word
_LETTER = rf"[^\W{HAN}]"
WORD = rf"(?u)[{HAN}]|(?={_LETTER}(?:{_LETTER}|[{MARKS}])){_LETTER}+(?:[{MARKS}]+{_LETTER}*)*"
AT_ONCE = 32  # queries whose scores with all documents stand in memory
Sparse = Any  # a matrix of scipy


def lexical_order(documents: Sequence[str], queries: Sequence[str], top: int) -> npt.NDArray[np.int64]:
    """[queries, top]: the rows of the documents with the largest cosines, best first; equal ones in their order."""
    model = _vectorizer()
    try:
        known = model.fit_transform(documents)
    except ValueError:  # no word but stop words
        return np.tile(np.arange(min(top, len(documents))), (len(queries), 1))
    return best_rows(model.transform(queries), known, top)


def lexical_cosines(first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
    """[pairs]: the cosine of each pair; words are weighed by all texts of both sides, each counted once."""
    left, right = lexical_sides(first, second)
    return np.asarray(left.multiply(right).sum(axis=1)).ravel()


def lexical_sides(first: Sequence[str], second: Sequence[str]) -> tuple[Sparse, Sparse]:
    """Unit rows of both sides, in one vocabulary; words are weighed by all texts of both, each counted once."""
    model = _vectorizer()
    try:
        model.fit(sorted({*first, *second}))
    except ValueError:
        return _nothing(len(first)), _nothing(len(second))
    return model.transform(first), model.transform(second)


def lexical_vectors(texts: Sequence[str]) -> Sparse:
    """[texts, words]: unit rows; a text of stop words alone, or of none, is a row of zeros."""
    try:
        return _vectorizer().fit_transform(texts)
    except ValueError:
        return _nothing(len(texts))


def best_rows(asked: Sparse, known: Sparse, top: int) -> npt.NDArray[np.int64]:
    """[queries, top]: the rows of ``known`` with the largest dot products, best first; equal ones in their order."""
    columns = known.T.tocsr()
    blocks = ((asked[start : start + AT_ONCE] @ columns).toarray() for start in range(0, asked.shape[0], AT_ONCE))
    return np.concatenate([np.argsort(-scores, axis=1, kind="stable")[:, :top] for scores in blocks])


def _nothing(rows: int) -> Sparse:
    from scipy.sparse import csr_matrix

    return csr_matrix((rows, 1))


def lexical_scores(known: Sequence[str], first: Sequence[str], second: Sequence[str]) -> npt.NDArray[np.float64]:
    """[first, second]: the cosines of all texts of one side with all of the other; ``known`` weighs the words."""
    model = _vectorizer()
    try:
        model.fit(known)
    except ValueError:
        return np.zeros((len(first), len(second)))
    return np.asarray((model.transform(first) @ model.transform(second).T).toarray())


def _vectorizer() -> Any:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return TfidfVectorizer(sublinear_tf=True, stop_words="english", token_pattern=WORD)
