"""DeepMoji (Felbo et al. 2017): predict the emoji that a text had, and learn sentiment, emotion and sarcasm by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.classifier import Classifier, layer_of
from isotrope.encoders.encoder import Encoder
from isotrope.encoders.parts.attention import attend
from isotrope.errors import InputError
from isotrope.measures.classification import macro_f1, top_accuracy
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.classifying import Classifying
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.settings import OneOf, Settings, at_least
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers


@dataclass(frozen=True)
class DeepMojiSettings(Settings):
    """The paper's 64 emoji. Attention stays in the exported encoder; pooling is what every reader of it knows."""

    emoji: Annotated[int, at_least(2), "Number of classes: the most frequent emoji; other records are left out"] = 64
    balanced: Annotated[bool, "Count each class the same, as if rare ones were drawn more often"] = True
    read_out: Annotated[
        str, OneOf("attention", "pooling"), "Read-out that is trained and kept: attention, or the model's own pooling"
    ] = "attention"


class DeepMoji(Method[DeepMojiSettings], OwnTask, Classifying):
    """ℓ = −(1/n) Σ_i w_{y_i} log softmax(U v_i + b)_{y_i}

        v = Σ_t a_t h_t,   a = softmax_t(w · h_t)        w_c = n / (classes · n_c)

    The weights w_c stand for the up-sampling of the paper: the mean of the loss is the same. A text with m different
    emoji is m records. U is kept as the model's classifier; the attention stays. When to use it: tweets or chats with
    emoji, for tasks on feelings. What goes wrong: emoji of equal use are confused, and an encoder of feelings is a poor
    one of topics. Siblings: ``fine-tune`` has labels that a person gave, ``supcon`` contrasts them.
    """

    card = Card(
        name="deepmoji",
        title="DeepMoji, emoji as labels",
        paper="Felbo, Mislove, Søgaard, Rahwan, Lehmann. Using millions of emoji occurrences to learn any-domain "
        "representations. EMNLP 2017",
        year=2017,
        needs="labelled",
        accepts=("emoji",),
        family="supervised",
    )
    keeps = "last"  # whether halves of a text find each other says nothing about feelings
    shared_views = ("texts",)
    Settings = DeepMojiSettings
    class_weights: Tensor

    def prepare(self, corpus: Corpus) -> Prepared:
        if len(corpus.classes) < 2:
            raise InputError(f"Every text is labelled {corpus.classes[0]}; at least two different emoji are needed.")
        self.classes = classes_of(corpus, self.settings.emoji)
        found = self.classes[corpus.numbers("label")]
        kept, empty = found >= 0, corpus.counts.empty
        self.register_buffer("class_weights", torch.ones(int(found.max()) + 1))
        self.count(np.flatnonzero(kept))
        fewer = (
            f"The {self.settings.emoji} most frequent of {len(self.classes):,} labels are kept; "
            f"{(~kept).sum():,} records are left out."
        )
        without = f"{empty:,} texts have no emoji, or nothing else, and are left out."
        said = [fewer] * (not kept.all()) + [without] * (corpus.record_type.in_text and empty > 0)
        return Prepared(kept, tuple(said))

    def count(self, rows: Rows) -> None:
        assert self.corpus is not None
        found = self.classes[self.corpus.numbers("label")[rows]]
        counts = torch.from_numpy(np.bincount(found, minlength=len(self.class_weights))).float()
        if self.settings.balanced:
            self.class_weights.copy_(counts.sum() / (len(counts) * counts.clamp(min=1)))

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.corpus is None:
            raise InputError("deepmoji needs its data at the start: the head has an output for each emoji.")
        if self.settings.read_out == "attention":
            attend(encoder)
        return {"head": Trained(nn.Linear(encoder.dimension, len(self.class_weights)))}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"texts": self.frame(records.tokens()), "labels": Numbers.of(self.classes[records.labels()])}

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (vectors,) = self.encoder.embed(batch["texts"])
        return {"scores": self.tower["head"](vectors), "labels": batch["labels"].values}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        scores, labels = representations["scores"], representations["labels"]
        return {"emoji": cross_entropy(scores, labels, self.class_weights, reduction="none").mean()}

    def classifier(self) -> Classifier | None:
        if self.corpus is None:
            return None
        kept = [name for name, number in zip(self.corpus.classes, self.classes, strict=True) if number >= 0]
        return Classifier((layer_of(self.tower["head"].module),), tuple(kept))

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        scores, labels = representations["scores"], representations["labels"].long()
        found = {"emoji_accuracy": top_accuracy(scores, labels), "emoji_top5": top_accuracy(scores, labels, 5)}
        guess = torch.bincount(labels).max() / len(labels)  # accuracy of always predicting the most frequent one
        return {**found, "emoji_macro_f1": macro_f1(scores, labels), "emoji_guess": guess}


def classes_of(corpus: Corpus, most: int) -> npt.NDArray[np.int64]:
    """Of each label, its class among the ``most`` frequent ones; −1 for the others. The first of equals are taken."""
    counts = np.bincount(corpus.numbers("label"), minlength=len(corpus.classes))
    kept = np.sort(np.argsort(-counts, kind="stable")[:most])
    found = np.full(len(counts), -1, dtype=np.int64)
    found[kept] = np.arange(len(kept))
    return found
