"""Re-ranking: the first hits of a search, ordered anew by how well their tokens match those of the query.

    score(d) = ½ z(s₀) + ¼ z(s_words) + ¼ z(s_states)

s₀ is the score that the search gave, s_words and s_states are late interaction (measures/late_interaction.py) over the
model's input embeddings and over its last layer; z is over the hits that are compared. Words match what is spelt
alike, states what is meant alike; both have the weights of the words, a soft idf among these hits. The shares were
chosen on sets that are not reported (benchmarks/token_reranking.py).

Use it where the order of the first hits is worth half a second: each hit is read by the model once more, in windows
where it is longer than the model reads, so that its end counts too. What was read stays in memory for the next query,
up to ``KEPT`` bytes. An index may keep the states of all its rows (stored_tokens.py): then no text is read.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from isotrope.encoders.encoder_uses import DOCUMENT_NAMES, QUERY_NAMES
from isotrope.encoders.token_states import TokenStates, token_states, word_states
from isotrope.errors import InputError
from isotrope.measures.late_interaction import best_matches, rarity
from isotrope.measures.score_fusion import standardised

if TYPE_CHECKING:
    from isotrope.encoders.encoder import Encoder
    from isotrope.search.hits import Hit

SHARES = np.array([0.5, 0.25, 0.25])  # of the score before, of words, of states
KEPT = 256 << 20  # bytes of token states
Floats = npt.NDArray[np.float64]
Stored = Callable[[int], TokenStates | None]


def has_tokens(encoder: Encoder) -> bool:
    """Whether the model says something of each token; an exported graph ends with the vector of the text."""
    return hasattr(encoder.network, "get_input_embeddings")


def check_tokens(encoder: Encoder, setting: str) -> None:
    if not has_tokens(encoder):
        raise InputError(
            f"{setting} needs vectors of tokens, and an exported model gives those of whole texts only; leave it out, "
            "or index with the model that was exported.",
            setting,
        )


class Reranker:
    """An encoder that orders hits anew."""

    def __init__(self, encoder: Encoder) -> None:
        check_tokens(encoder, "rerank")
        self._query, self._document = (encoder.prompted(names) for names in (QUERY_NAMES, DOCUMENT_NAMES))
        self._kept: OrderedDict[str, TokenStates] = OrderedDict()
        self._size = 0

    def reordered(
        self, queries: Sequence[str], found: Sequence[list[Hit]], stored: Stored = lambda row: None
    ) -> list[list[Hit]]:
        """The hits of each query, the best first; of equal ones the one that was first. ``stored`` gives the token
        states of a row of the index, where it keeps them."""
        answers = []
        for hits, three in zip(found, self.standardised(queries, found, stored), strict=True):
            scores = SHARES @ three
            order = np.argsort(-scores, kind="stable").tolist()
            answers.append([replace(hits[place], score=float(scores[place])) for place in order])
        return answers

    def standardised(
        self, queries: Sequence[str], found: Sequence[list[Hit]], stored: Stored = lambda row: None
    ) -> Iterator[Floats]:
        """[3, hits] of each query: z(s₀), z(s_words), z(s_states)."""
        words = partial(word_states, self._document)
        for query, hits in zip(token_states(self._query, queries), found, strict=True):
            known = [stored(hit.row) for hit in hits]
            read = iter(self._read([hit.text for hit, states in zip(hits, known, strict=True) if states is None]))
            documents = [next(read) if states is None else states for states in known]
            by_word = best_matches(words(query.ids), [words(one.ids) for one in documents])
            by_state = best_matches(query.states, [one.states for one in documents])
            weights, before = rarity(by_word), np.array([hit.score for hit in hits])
            among = np.ones(len(hits), dtype=np.bool_)
            yield np.stack([standardised(one, among) for one in (before, by_word @ weights, by_state @ weights)])

    def _read(self, texts: list[str]) -> list[TokenStates]:
        """From memory, or by the model; what was not asked for longest is forgotten first."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._kept]
        for text, states in zip(missing, token_states(self._document, missing), strict=True):
            self._kept[text] = states
            self._size += states.size
        found = [self._kept[text] for text in texts]
        for text in texts:
            self._kept.move_to_end(text)
        while self._size > KEPT:
            self._size -= self._kept.popitem(last=False)[1].size
        return found
