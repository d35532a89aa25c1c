"""Sentence pairs as a capability: two segments of a text in one row, and a classifier at [CLS].

    [CLS] A [SEP] B [SEP]        ℓ = −log softmax(U·tanh(W·h_[CLS]))_label, mean over pairs

The papers differ in how a pair and its label are drawn. W and U are dropped afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Method, Prepared
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.settings import ClosedShare, Settings
from isotrope.towers.heads import tanh_head
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers
from isotrope.views.segments import (
    Hidden,
    Ids,
    cut_in_two,
    document_sizes,
    draw_elsewhere,
    draw_length,
    fit_pair,
    ids_of,
    run_from,
)

Pair = tuple[Ids, Ids, int]  # both segments and the label


@dataclass(frozen=True)
class SentencePairSettings(Settings):
    """BERT's: most pairs fill the row."""

    short_share: Annotated[ClosedShare, "Share of the pairs that have a random length instead of the longest"] = 0.1


P = TypeVar("P", bound=SentencePairSettings)


class SentencePairs(Method[P], OwnTask):
    """A record is the sentence that a pair begins with; ``pair`` draws what follows it, and the label.

    A pair is cut between two sentences, so a record needs a sentence after it, unless ``takes_last_sentences``.
    """

    keeps = "last"
    shared_views: tuple[str, ...] = ("pairs",)
    classes: ClassVar[int] = 2
    hidden: Hidden | None = None  # of each row: whether it is held out
    takes_last_sentences: ClassVar[bool] = False  # those that nothing follows in their document

    @property
    def task(self) -> str:
        """The name of the term and of its measures."""
        return self.card.name

    def prepare(self, corpus: Corpus) -> Prepared:
        sizes = document_sizes(corpus, self.card.name)
        alone = int((sizes == 1).sum())
        fate = "is never followed by its own text" if self.takes_last_sentences else "is left out"
        said = f"{alone:,} of {len(sizes):,} documents are a single sentence, which {fate}."
        followed = np.ones(len(corpus), dtype=np.bool_)
        followed[np.append(corpus.starts[1:], len(corpus)) - 1] = False
        return Prepared(None if self.takes_last_sentences else followed, (said,) if alone else ())

    def set_held_out(self, corpus: Corpus, held: Rows) -> None:
        self.hidden = np.zeros(len(corpus), dtype=np.bool_)
        self.hidden[held] = True

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        self.room = self._room(encoder)
        width = int(encoder.backbone.config.hidden_size)
        return {"head": Trained(nn.Sequential(tanh_head(width), nn.Linear(width, self.classes)))}

    def _room(self, encoder: Encoder) -> int:
        """Tokens of both segments together, at most."""
        specials = sum(map(len, encoder.text_tokenizer.pair_frame))
        room = min(self.max_length or encoder.max_length, encoder.max_length) - specials
        if room < 2:
            raise InputError(
                f"max_length must be at least {specials + 2}: {specials} special tokens and one of each segment."
            )
        return room

    def pair(self, records: Records, row: int, rng: np.random.Generator) -> Pair:
        raise NotImplementedError

    def followed(self, corpus: Corpus, row: int, rng: np.random.Generator) -> tuple[range, range, int]:
        """Sentences from ``row`` on, cut in two at random, and how many tokens they were to have."""
        length = draw_length(self.room, self.settings.short_share, rng)
        return *cut_in_two(run_from(corpus, row, length, 2, self.hidden), rng), length

    def next_or_random(self, records: Records, row: int, rng: np.random.Generator, random_share: float) -> Pair:
        """Label 0: the second segment follows the first; label 1: it is of another document."""
        first, second, length = self.followed(records.corpus, row, rng)
        if len(second) and rng.random() >= random_share:
            return *self.related(records.corpus, first, second, rng), 0
        return *self.unrelated(records, first, length, rng), 1

    def unrelated(self, records: Records, first: range, length: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """The first segment, and as much of another document as fits into the row with it."""
        ids = ids_of(records.corpus, first)
        other = draw_elsewhere(records, first[0], rng)
        run = run_from(records.corpus, other, length - len(ids), hidden=self.hidden)
        return fit_pair(ids, ids_of(records.corpus, run), self.room, rng)

    def related(self, corpus: Corpus, first: range, second: range, rng: np.random.Generator) -> tuple[Ids, Ids]:
        return fit_pair(ids_of(corpus, first), ids_of(corpus, second), self.room, rng)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        firsts, seconds, labels = zip(*(self.pair(records, row, rng) for row in records.rows), strict=True)
        return {"pairs": self.encoder.frame_pairs(firsts, seconds), "labels": Numbers.of(labels)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        return self.classified(self.encoder.states(batch["pairs"])[:, 0], batch)

    def classified(self, first: Tensor, batch: Batch) -> dict[str, Tensor]:
        """The scores of each pair, from the state of its first token, and its label."""
        return {"scores": self.tower["head"](first), "labels": batch["labels"].values}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {self.task: cross_entropy(representations["scores"], representations["labels"])}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        """Accuracy, and that of always guessing the most frequent label."""
        scores, labels = representations["scores"], representations["labels"].long()
        frequent = torch.bincount(labels).max() / len(labels)
        return {
            f"{self.task}_accuracy": (scores.argmax(dim=1) == labels).float().mean(),
            f"{self.task}_guess": frequent,
        }
