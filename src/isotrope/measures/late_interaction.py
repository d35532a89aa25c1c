"""Late interaction: each token of a query looks for its best match among the tokens of a text.

    m_i(d)  = max_j cos(q_i, d_j)
    s(q, d) = Σ_i w_i · m_i(d),    w_i = log(1 + (n + 1) / (½ + Σ_d max(m_i(d), 0)))

n texts are compared; w is a soft idf among them: a token that most of them have, or nearly have, says little. One
vector a text must hold everything that may be asked; here a name or a number keeps its own vector. It costs the
vectors of all tokens, so it re-orders the first hits of a cheaper ranking. Scores of two queries do not compare.
Source: ColBERT, Khattab, Zaharia 2020, whose encoder is trained for it; the weights are ours.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.floating]


def best_matches(query: Floats, documents: Sequence[Floats]) -> npt.NDArray[np.float64]:
    """[documents, tokens of the query]: the cosine of each one's best match; 0 in a document without tokens.

    Rows of ``query`` [tokens, d] and of each document [its tokens, d] are unit vectors.
    """
    found, asked = np.zeros((len(documents), len(query))), query.astype(np.float32)  # float16 has no fast product
    for row, document in enumerate(documents):
        if len(document):
            found[row] = (asked @ document.astype(np.float32).T).max(axis=1)
    return found


def rarity(matches: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """[tokens]: w of the equation, from [documents, tokens] matches."""
    frequency = np.maximum(matches, 0.0).sum(axis=0)
    return np.asarray(np.log1p((len(matches) + 1) / (0.5 + frequency)))
