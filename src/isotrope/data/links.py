"""Which entities a sentence and its page link to over all records, and which entities share a type."""

from __future__ import annotations

import itertools
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from isotrope.data.corpus import Corpus

NONE = -1  # stands where there is no entity
TRIES = 10  # at an entity of the same type, before all of them are looked at


class Links:
    """Looked up by row; built once from a corpus of the record type ``linked``.

    Hard entities of a sentence are not on its page, where the data name pages; with ``by_page`` False, and where they
    name none, they are only not in the sentence.
    """

    def __init__(self, corpus: Corpus, by_page: bool = True) -> None:
        self.corpus = corpus
        self.by_page = by_page

    def linked(self, row: int) -> npt.NDArray[np.int32]:
        """All entities that records with this row's sentence link it to."""
        return _found(*self._by_sentence, self.corpus.keys[row, 0])

    def on_page(self, row: int) -> npt.NDArray[np.int32]:
        """All entities that this row's page links to; none where the page is not known."""
        page = self.corpus.page_numbers()[row]
        return _found(*self._by_page, page) if page != NONE else np.empty(0, dtype=np.int32)

    def hard_entity(self, row: int, rng: np.random.Generator) -> int:
        """A hard negative that the data name, else an entity of the same type that the page does not link to.

        −1 where there is none.
        """
        given = self.corpus.hard_entities(row)
        if len(given):
            return int(rng.choice(given))
        sort = int(self.corpus.type_numbers()[row])
        if sort == NONE:
            return NONE
        drawn = rng.choice(self._by_type[sort], TRIES)
        near = np.concatenate([self.linked(row), self.on_page(row)]) if self.by_page else self.linked(row)
        free = drawn[~np.isin(drawn, near)]
        if not len(free):
            free = rng.permutation(np.setdiff1d(self._by_type[sort], near))
        return int(free[0]) if len(free) else NONE

    @cached_property
    def _by_sentence(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]:
        """Keys of the sentences, sorted, and the entity that each record links its sentence to."""
        order = np.argsort(self.corpus.keys[:, 0], kind="stable")
        return self.corpus.keys[order, 0], self.corpus.numbers("entity")[order]

    @cached_property
    def _by_page(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Numbers of the pages, sorted, and the entity that each record of the page links to."""
        order = np.argsort(self.corpus.page_numbers(), kind="stable")
        return self.corpus.page_numbers()[order], self.corpus.numbers("entity")[order]

    @cached_property
    def _by_type(self) -> list[npt.NDArray[np.int64]]:
        """For each type the entities that carry it, each once."""
        pairs = np.stack([self.corpus.type_numbers(), self.corpus.numbers("entity")])
        sorts, entities = np.unique(pairs, axis=1).astype(np.int64)
        begins = np.searchsorted(sorts, np.arange(len(self.corpus.types) + 1))
        return [entities[begin:end] for begin, end in itertools.pairwise(begins)]


def _found(keys: npt.NDArray[Any], values: npt.NDArray[np.int32], key: Any) -> npt.NDArray[np.int32]:
    """The values whose key is this one; the keys are sorted."""
    return values[np.searchsorted(keys, key, "left") : np.searchsorted(keys, key, "right")]
