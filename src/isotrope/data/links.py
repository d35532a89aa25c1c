"""Which entities a sentence links to over all records, and which entities share a type."""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np
import numpy.typing as npt

from isotrope.data.corpus import Corpus

NONE = -1  # stands where there is no entity
TRIES = 10  # at an entity of the same type that the sentence does not link to


class Links:
    """Looked up by row; built once from a corpus of the record type ``linked``."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    def linked(self, row: int) -> npt.NDArray[np.int32]:
        """All entities that records with this row's sentence link it to."""
        keys, entities = self._by_sentence
        key = self.corpus.keys[row, 0]
        return entities[np.searchsorted(keys, key, "left") : np.searchsorted(keys, key, "right")]

    def hard_entity(self, row: int, rng: np.random.Generator) -> int:
        """A hard negative that the data name, else an entity of the same type that the sentence does not link to.

        −1 where there is none.
        """
        given = self.corpus.hard_entities(row)
        if len(given):
            return int(rng.choice(given))
        sort = int(self.corpus.type_numbers()[row])
        if sort == NONE:
            return NONE
        drawn = rng.choice(self._by_type[sort], TRIES)
        free = drawn[~np.isin(drawn, self.linked(row))]
        return int(free[0]) if len(free) else NONE

    @cached_property
    def _by_sentence(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
        """Keys of the sentences, sorted, and the entity that each record links its sentence to."""
        order = np.argsort(self.corpus.keys[:, 0], kind="stable")
        return self.corpus.keys[order, 0], self.corpus.numbers("entity")[order]

    @cached_property
    def _by_type(self) -> list[npt.NDArray[np.int64]]:
        """For each type the entities that carry it, each once."""
        pairs = np.stack([self.corpus.type_numbers(), self.corpus.numbers("entity")])
        sorts, entities = np.unique(pairs, axis=1).astype(np.int64)
        begins = np.searchsorted(sorts, np.arange(len(self.corpus.types) + 1))
        return [entities[begin:end] for begin, end in itertools.pairwise(begins)]
