"""Next sentence prediction (Devlin et al. 2019): does the second segment follow the first, or is it from another
document?
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.towers.heads import tanh_head
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers
from isotrope.views.segments import (
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
    short_share: float = 0.1  # of the pairs have a random length instead of the longest, as in BERT


class SentencePairs(Method):
    """[CLS] A [SEP] B [SEP]; ℓ = −log softmax(U·tanh(W·h_[CLS]))_label, mean over pairs. W and U are dropped
    afterwards.

    A record is the sentence that a pair begins with; ``pair`` draws what follows. Two of its sentences have a boundary
    to cut at.
    """

    needs = "documents"
    keeps = "last"
    classes: ClassVar[int] = 2
    takes_last_sentences: ClassVar[bool] = False  # those that nothing follows in their document
    settings: Any

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        if not 0 <= settings.short_share <= 1:
            raise InputError(f"short_share must lie between 0 and 1; {settings.short_share} was given.")

    @classmethod
    def usable(cls, settings: Any, corpus: Corpus, rows: Rows) -> Rows:
        document_sizes(corpus, cls.card.name)
        followed = np.ones(len(corpus), dtype=np.bool_)
        followed[np.append(corpus.starts[1:], len(corpus)) - 1] = False
        return rows if cls.takes_last_sentences else rows[followed[rows]]

    def remarks(self) -> list[str]:
        sizes = np.empty(0) if self.corpus is None else np.diff(self.corpus.starts, append=len(self.corpus))
        alone = int((sizes == 1).sum())
        fate = "is never followed by its own text" if self.takes_last_sentences else "is left out"
        return [f"{alone:,} of {len(sizes):,} documents are a single sentence, which {fate}."] if alone else []

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        specials = sum(map(len, encoder.text_tokenizer.pair_frame))
        self.room = min(self.max_length or encoder.max_length, encoder.max_length) - specials
        if self.room < 2:
            raise InputError(
                f"max_length must be at least {specials + 2}: {specials} special tokens and one of each segment."
            )
        width = int(encoder.backbone.config.hidden_size)
        return {"head": Trained(nn.Sequential(tanh_head(width), nn.Linear(width, self.classes)))}

    def pair(self, records: Records, row: int, rng: np.random.Generator) -> Pair:
        raise NotImplementedError

    def followed(self, corpus: Corpus, row: int, rng: np.random.Generator) -> tuple[range, range, int]:
        """Sentences from ``row`` on, cut in two at random, and how many tokens they were to have."""
        length = draw_length(self.room, self.settings.short_share, rng)
        return *cut_in_two(run_from(corpus, row, length, fewest=2), rng), length

    def unrelated(self, records: Records, first: range, length: int, rng: np.random.Generator) -> tuple[Ids, Ids]:
        """The first segment, and as much of another document as there is room for beside it."""
        ids = ids_of(records.corpus, first)
        run = run_from(records.corpus, draw_elsewhere(records, first[0], rng), length - len(ids))
        return fit_pair(ids, ids_of(records.corpus, run), self.room, rng)

    def related(self, corpus: Corpus, first: range, second: range, rng: np.random.Generator) -> tuple[Ids, Ids]:
        return fit_pair(ids_of(corpus, first), ids_of(corpus, second), self.room, rng)

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        firsts, seconds, labels = zip(*(self.pair(records, row, rng) for row in records.rows), strict=True)
        return {"pairs": self.encoder.frame_pairs(firsts, seconds), "labels": Numbers.of(labels)}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        return self.told(self.encoder.states(batch["pairs"]), batch)

    def told(self, states: Tensor, batch: Batch) -> dict[str, Tensor]:
        """What the first token of each row says of its pair, and what is right."""
        return {"scores": self.tower["head"](states[:, 0]), "labels": batch["labels"].values}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        return {self.card.name: cross_entropy(representations["scores"], representations["labels"])}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        scores, labels = representations["scores"], representations["labels"].long()
        frequent = torch.bincount(labels).max() / len(labels)
        return {
            f"{self.card.name}_accuracy": (scores.argmax(dim=1) == labels).float().mean(),
            f"{self.card.name}_guess": frequent,
        }


@dataclass(frozen=True)
class NextSentenceSettings(SentencePairSettings):
    random_share: float = 0.5  # of the second segments are from another document; always where nothing follows


class NextSentence(SentencePairs):
    """Label 0: B follows A in the text. Label 1: B is a run of sentences of another document."""

    card = Card(
        name="nsp",
        title="Next sentence prediction",
        paper="Devlin, Chang, Lee, Toutanova. BERT: Pre-training of Deep Bidirectional Transformers. NAACL 2019",
        year=2019,
        family="generative",
    )
    takes_last_sentences = True
    Settings = NextSentenceSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        if not 0 < settings.random_share < 1:
            raise InputError(
                f"random_share must lie between 0 and 1, so that there are two classes; {settings.random_share} was given."
            )

    def pair(self, records: Records, row: int, rng: np.random.Generator) -> Pair:
        first, second, length = self.followed(records.corpus, row, rng)
        if len(second) and rng.random() >= self.settings.random_share:
            return *self.related(records.corpus, first, second, rng), 0
        return *self.unrelated(records, first, length, rng), 1
