"""BM25 (Robertson et al. 1994), the ranking of search engines: shared words, weighed by rarity and by length.

    score(q, d) = Σ_{t ∈ q} idf_t · tf (k₁ + 1) / (tf + k₁ (1 − b + b · |d| / mean |d|))
    idf_t       = log(1 + (N − n_t + ½) / (n_t + ½))

tf is how often t stands in d, |d| the number of its words, n_t the documents with t among N; k₁ = 1.2 and b = 0.75, as
in Lucene. A word that the query repeats counts each time. Words are those of ``lexical``: lower-cased, without English
stop words, a character each in scripts without blanks. It is the baseline for retrieval: the gain of a repeated word
levels off, and long documents have no advantage. It is no cosine: scores of different queries do not compare, so it has
no place on scored pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from isotrope.evaluation.lexical import WORD, Sparse, best_rows

TITLE = "BM25"
K1, B = 1.2, 0.75
DESCRIPTION = f"k1 {K1}, b {B}, idf log(1 + (N − n + ½)/(n + ½)), scikit-learn's words, English stop words"


def bm25_order(documents: Sequence[str], queries: Sequence[str], top: int) -> npt.NDArray[np.int64]:
    """[queries, top]: the rows of the documents with the largest scores, best first; equal ones in their order."""
    try:
        asked, known = _weighed(documents, queries)
    except ValueError:  # no word but stop words
        return np.tile(np.arange(min(top, len(documents))), (len(queries), 1))
    return best_rows(asked, known, top)


class Bm25:
    """The documents that share a word with a query, and the scores of any."""

    def __init__(self, documents: Sequence[str], queries: Sequence[str]) -> None:
        try:
            self.asked, self.known = _weighed(documents, queries)
        except ValueError:
            from scipy.sparse import csr_matrix

            self.asked, self.known = csr_matrix((len(queries), 1)), csr_matrix((len(documents), 1))
        self.columns = self.known.T.tocsr()

    def found(self, query: int, top: int) -> list[tuple[int, float]]:
        """(document, score), best first, equal ones in their order; up to ``top`` that share a word."""
        scores = (self.asked[query] @ self.columns).toarray().ravel()
        best = np.argsort(-scores, kind="stable")[:top]
        return [(int(row), float(scores[row])) for row in best if scores[row] > 0]

    def scores(self, query: int, rows: Sequence[int]) -> npt.NDArray[np.float64]:
        return np.asarray((self.known[list(rows)] @ self.asked[query].T).toarray()).ravel()


def bm25_scores(queries: Sequence[str], documents: Sequence[str]) -> npt.NDArray[np.float64]:
    """[pairs]: the score of ``queries[i]`` with ``documents[i]``; words are weighed by all documents."""
    try:
        asked, known = _weighed(documents, queries)
    except ValueError:
        return np.zeros(len(queries))
    return np.asarray(asked.multiply(known).sum(axis=1)).ravel()


def _weighed(documents: Sequence[str], queries: Sequence[str]) -> tuple[Sparse, Sparse]:
    """Counts of the queries [queries, words], and weights of the documents [documents, words]."""
    from sklearn.feature_extraction.text import CountVectorizer

    model = CountVectorizer(stop_words="english", token_pattern=WORD, dtype=np.float64)
    known = model.fit_transform(documents).tocsr()
    lengths = np.asarray(known.sum(axis=1)).ravel()
    with_word = np.bincount(known.indices, minlength=known.shape[1])
    rarity = np.log1p((len(documents) - with_word + 0.5) / (with_word + 0.5))
    long = np.repeat(K1 * (1 - B + B * lengths / lengths.mean()), np.diff(known.indptr))
    known.data = rarity[known.indices] * known.data * (K1 + 1) / (known.data + long)
    return model.transform(queries), known
