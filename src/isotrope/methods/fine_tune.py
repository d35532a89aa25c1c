"""Fine-tuning (Devlin et al. 2019): encoder and a new head learn a task from labelled texts or pairs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from isotrope.data.batches import Rows
from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.classifier import Classifier, layer_of
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.measures.classification import agreement
from isotrope.measures.correlation import correlations
from isotrope.methods.frame.batch import Batch, View
from isotrope.methods.frame.classifying import Classifying
from isotrope.methods.frame.label_targets import Classes, Scores
from isotrope.methods.frame.method import Card, Method, Prepared
from isotrope.methods.frame.own_task import OwnTask
from isotrope.methods.frame.settings import OneOf, Settings, at_least
from isotrope.tokens.padded import Tokens
from isotrope.towers.heads import tanh_head
from isotrope.towers.keeping import Tower, Trained
from isotrope.views.numbers import Numbers
from isotrope.views.segments import trim_pair

FORMS = {"classification": ("labelled", "labelled-pairs"), "regression": ("scored-pairs", "labelled")}


@dataclass(frozen=True)
class FineTuneSettings(Settings):
    """BERT's head for a classification of whole rows."""

    form: Annotated[str, OneOf("auto", *FORMS), "The task; auto: labels are classes, scores are scores"] = "auto"
    dropout: Annotated[float, at_least(0, below=1), "Dropout between the two layers of the head"] = 0.1
    test: Annotated[
        str | None, "A file of the same record type, measured at each evaluation; nothing is chosen by it"
    ] = None
    positive: Annotated[str | None, "Of two classes, the one that F1 is about; none: the last by name"] = None


class FineTune(Method[FineTuneSettings], OwnTask, Classifying):
    """v = the encoder's vector of [CLS] A [SEP], or of [CLS] A [SEP] B [SEP]; s = U·dropout(tanh(W·v))

    classification   −log softmax(s)_label
    regression       (s − (score − mean) / deviation)²

    Both texts of a pair are read together, each in the light of the other. The last weights are kept: nothing is chosen
    by the records that the task is measured on. W and U are kept as the model's classifier.

    When to use it: a labelled task that is to be measured or learned first, with the encoder as its by-product. What
    goes wrong: a vector tuned for one task is a worse one for others, and the vector of a pair stands for neither
    text. Siblings: ``sbert`` encodes each text of a pair alone, ``supcon`` compares texts of a class.
    """

    card = Card(
        name="fine-tune",
        title="Supervised fine-tuning",
        paper="Devlin, Chang, Lee, Toutanova. BERT: Pre-training of Deep Bidirectional Transformers. NAACL 2019",
        year=2019,
        needs="labelled",
        accepts=("labelled-pairs", "scored-pairs"),
        family="supervised",
        read_out="cls",
    )
    Settings = FineTuneSettings
    keeps = "last"
    chooses = True
    shared_views = ("texts",)

    @classmethod
    def record_types(cls, settings: FineTuneSettings) -> tuple[str, ...]:
        return super().record_types(settings) if settings.form == "auto" else FORMS[settings.form]

    def prepare(self, corpus: Corpus) -> Prepared:
        self.targets = _targets(self.settings, corpus)
        self._known: dict[str, npt.NDArray[Any]] = {}  # by corpus, the target of each label or score
        self.pairs = len(corpus.record_type.fields) > 1
        tokenizer, longest = self.encoder.text_tokenizer, self.encoder.max_length
        specials = sum(map(len, tokenizer.pair_frame)) if self.pairs else len(tokenizer.prefix) + len(tokenizer.suffix)
        self.room = min(self.max_length or longest, longest) - specials
        if self.pairs and self.room < 2:
            raise InputError(
                f"max_length must be at least {specials + 2}: {specials} special tokens and one of each text."
            )
        cut, what = int((corpus.lengths().sum(axis=1) > self.room).sum()), "pairs" if self.pairs else "texts"
        remark = f"{cut:,} of {len(corpus):,} {what} are longer than max_length and are cut."
        return Prepared(remarks=(remark,) if cut else ())

    def count(self, rows: Rows) -> None:
        if isinstance(self.targets, Scores) and self.corpus is not None:
            self.targets = Scores.of(self.corpus, rows)

    def test_sets(self, opened: Callable[[str], Corpus]) -> dict[str, Corpus]:
        if self.settings.test is None:
            return {}
        test = opened(self.settings.test)
        self.targets.check(test, self.settings.test)
        return {"test": test}

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        if self.corpus is None:
            raise InputError("Fine-tuning needs its data at the start: they say how many classes there are.")
        outputs = len(self.targets.names) if isinstance(self.targets, Classes) else 1
        head = nn.Sequential(
            tanh_head(encoder.dimension), nn.Dropout(self.settings.dropout), nn.Linear(encoder.dimension, outputs)
        )
        return {"head": Trained(head)}

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        return {"texts": self._framed(records), "targets": Numbers.of(self._wanted(records))}

    def _framed(self, records: Records) -> Tokens:
        if not self.pairs:
            return self.frame(records.tokens())
        both = zip(*(records.tokens(field) for field in records.fields), strict=True)
        firsts, seconds = zip(*(trim_pair(first, second, self.room) for first, second in both), strict=True)
        return self.encoder.frame_pairs(firsts, seconds)

    def _wanted(self, records: Records) -> npt.NDArray[Any]:
        corpus = records.corpus
        if corpus.fingerprint not in self._known:
            self._known[corpus.fingerprint] = self.targets(corpus.names)
        return self._known[corpus.fingerprint][corpus.numbers(corpus.record_type.value or "")[records.rows]]

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (vectors,) = self.encoder.embed(batch["texts"])
        return {"outputs": self.tower["head"](vectors), "targets": batch["targets"].values}

    def loss(self, representations: dict[str, Tensor], generator: torch.Generator) -> dict[str, Tensor]:
        outputs, targets = representations["outputs"], representations["targets"]
        if isinstance(self.targets, Classes):
            return {"classification": cross_entropy(outputs, targets)}
        return {"regression": mse_loss(outputs[:, 0], targets)}

    def classifier(self) -> Classifier:
        head: Any = self.tower["head"].module
        hidden, _, last = head
        layers, inputs = (layer_of(hidden.linear, "tanh"), layer_of(last)), 2 if self.pairs else 1
        if isinstance(self.targets, Scores):
            return Classifier(layers, (), "score", inputs, mean=self.targets.mean, deviation=self.targets.deviation)
        return Classifier(layers, self.targets.names, inputs=inputs)

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        outputs, targets = representations["outputs"], representations["targets"]
        if isinstance(self.targets, Scores):
            return correlations(outputs[:, 0], targets)
        names = self.targets.names
        positive = names.index(self.settings.positive) if self.settings.positive else len(names) - 1
        return agreement(outputs.argmax(dim=1), targets.long(), len(names), positive)


def _targets(settings: FineTuneSettings, corpus: Corpus) -> Classes | Scores:
    if settings.form == "regression" or (settings.form == "auto" and corpus.record_type.value == "score"):
        return Scores.of(corpus)
    classes = Classes.of(corpus)
    if settings.positive is not None and (len(classes.names) != 2 or settings.positive not in classes.names):
        known = ", ".join(classes.names[:10])
        raise InputError(f"positive names one of two classes; '{settings.positive}' was given, and there are {known}.")
    return classes
