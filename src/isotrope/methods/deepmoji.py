"""DeepMoji (Felbo et al. 2017): guess the emoji that a text had; what it takes to guess is sentiment, emotion, sarcasm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.attention import attend
from isotrope.errors import InputError
from isotrope.measures.classification import macro_f1, top_accuracy
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.method import Card, Method
from isotrope.methods.frame.settings import Settings
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers

READ_OUTS = ("attention", "pooling")


@dataclass(frozen=True)
class DeepMojiSettings(Settings):
    emoji: int = 64  # the most frequent ones are classes; records of others are left out
    # each class counts the same, as if rare ones were drawn more often; off: as often as they stand in the text
    balanced: bool = True
    read_out: str = "attention"  # the exported encoder keeps it; pooling: the model's own, which every reader has


class DeepMoji(Method):
    """ℓ = −(1/n) Σ_i w_{y_i} log softmax(U v_i + b)_{y_i},   v = Σ_t a_t h_t,   a = softmax_t(w · h_t);   w_c = n /
    (classes · n_c).

    The weights w_c stand for the up-sampling of the paper: the mean of the loss is the same. A text with m different
    emoji is m records. U is dropped afterwards; the attention stays.
    """

    card = Card(
        name="deepmoji",
        title="DeepMoji, emoji as labels",
        paper="Felbo, Mislove, Søgaard, Rahwan, Lehmann. Using millions of emoji occurrences to learn any-domain representations. EMNLP 2017",
        year=2017,
        needs="labelled",
        accepts=("emoji",),
        family="supervised",
    )
    keeps = "last"  # whether halves of a text find each other says nothing about feelings
    Settings = DeepMojiSettings
    class_weights: Tensor

    @classmethod
    def check(cls, settings: Any) -> None:
        if settings.emoji < 2:
            raise InputError(f"emoji is the number of classes and must be at least 2; {settings.emoji} was given.")
        if settings.read_out not in READ_OUTS:
            raise InputError(f"read_out is one of {', '.join(READ_OUTS)}; '{settings.read_out}' was given.")

    @classmethod
    def usable(cls, settings: Any, corpus: Corpus, rows: Rows) -> Rows:
        if len(corpus.classes) < 2:
            raise InputError(f"Every text is labelled {corpus.classes[0]}; at least two different emoji are needed.")
        return rows[classes_of(corpus, settings.emoji)[corpus.numbers("label")[rows]] >= 0]

    def remarks(self) -> list[str]:
        if self.corpus is None:
            return []
        kept = self.classes[self.corpus.numbers("label")] >= 0
        less = f"The {self.settings.emoji} most frequent of {len(self.classes):,} labels are kept; {(~kept).sum():,} records are left out."
        without = f"{self.corpus.counts.empty:,} texts have no emoji, or nothing else, and are left out."
        return [less] * (not kept.all()) + [without] * (
            self.corpus.record_type.in_text and self.corpus.counts.empty > 0
        )

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.corpus is None:
            raise InputError("deepmoji needs its data at the start: the head has an output for each emoji.")
        self.classes = classes_of(self.corpus, self.settings.emoji)
        found = self.classes[self.corpus.numbers("label")]
        counts = torch.from_numpy(np.bincount(found[found >= 0])).float()
        weights = counts.sum() / (len(counts) * counts) if self.settings.balanced else torch.ones_like(counts)
        self.register_buffer("class_weights", weights)
        if self.settings.read_out == "attention":
            attend(encoder)
        return {"head": Trained(nn.Linear(encoder.dimension, len(counts)))}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"texts": self.frame(records.tokens()), "labels": Numbers.of(self.classes[records.labels()])}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (vectors,) = self.encoder.embed(batch["texts"])
        return {"scores": self.tower["head"](vectors), "labels": batch["labels"].values}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        scores, labels = representations["scores"], representations["labels"]
        return {"emoji": cross_entropy(scores, labels, self.class_weights, reduction="none").mean()}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        scores, labels = representations["scores"], representations["labels"].long()
        found = {"emoji_accuracy": top_accuracy(scores, labels), "emoji_top5": top_accuracy(scores, labels, 5)}
        return {
            **found,
            "emoji_macro_f1": macro_f1(scores, labels),
            "emoji_guess": torch.bincount(labels).max() / len(labels),
        }


def classes_of(corpus: Corpus, most: int) -> npt.NDArray[np.int64]:
    """Of each label, its class among the ``most`` frequent ones; −1 for the others.

    Of equally frequent ones the first are taken.
    """
    counts = np.bincount(corpus.numbers("label"), minlength=len(corpus.classes))
    kept = np.sort(np.argsort(-counts, kind="stable")[:most])
    found = np.full(len(counts), -1, dtype=np.int64)
    found[kept] = np.arange(len(kept))
    return found
