"""Fine-tuning (Devlin et al. 2019): the whole encoder and a new head learn a task from labelled texts, or from pairs in
one row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, mse_loss

from isotrope.data.corpus import Corpus, Records
from isotrope.encoders.encoder import Encoder
from isotrope.errors import InputError
from isotrope.measures.classification import agreement
from isotrope.measures.correlation import correlations
from isotrope.methods.frame.label_targets import Classes, Scores
from isotrope.methods.frame.method import Batch, Method, Settings, View
from isotrope.tokens.text_tokenizer import Tokens
from isotrope.towers.heads import tanh_head
from isotrope.towers.keeping import Role, Trained
from isotrope.views.numbers import Numbers
from isotrope.views.segments import trim_pair

FORMS = {"classification": ("labelled", "labelled-pairs"), "regression": ("scored-pairs", "labelled")}


@dataclass(frozen=True)
class FineTuneSettings(Settings):
    form: str = "auto"  # classification or regression; auto: labels are classes, scores are scores
    dropout: float = 0.1  # between the two layers of the head
    test: str | None = None  # a file of the same kind, judged at each evaluation; nothing is chosen by it
    positive: str | None = (
        None  # of two classes, the one that F1 is about; none: the last by name, such as 1 of 0 and 1
    )


class FineTune(Method):
    """v = the encoder's vector of [CLS] A [SEP], or of [CLS] A [SEP] B [SEP]; s = U·dropout(tanh(W·v)).

    classification   −log softmax(s)_label
    regression       (s − (score − mean) / deviation)²

    Both texts of a pair are read together, each in the light of the other. The last weights are kept: nothing is chosen
    by the records that it is judged on. W and U are dropped afterwards.
    """

    name = "fine-tune"
    title = "Supervised fine-tuning"
    paper = "Devlin, Chang, Lee, Toutanova. BERT: Pre-training of Deep Bidirectional Transformers. NAACL 2019"
    year = 2019
    needs = "labelled"
    accepts = ("labelled-pairs", "scored-pairs")
    keeps = "last"
    judges_itself = True
    scores_itself = True
    Settings = FineTuneSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        if settings.form not in ("auto", *FORMS):
            raise InputError(f"form is one of auto, {', '.join(FORMS)}; '{settings.form}' was given.")
        if not 0 <= settings.dropout < 1:
            raise InputError(f"dropout must lie between 0 and 1; {settings.dropout} was given.")

    @classmethod
    def record_types(cls, settings: Any) -> tuple[str, ...]:
        return super().record_types(settings) if settings.form == "auto" else FORMS[settings.form]

    @classmethod
    def tests(cls, settings: Any, corpus: Corpus, opened: Callable[[str], Corpus]) -> dict[str, Corpus]:
        targets = _targets(settings, corpus)  # refuses data that nothing can be learned from
        if settings.test is None:
            return {}
        test = opened(settings.test)
        targets.check(test, settings.test)
        return {"test": test}

    def roles(self, encoder: Encoder) -> dict[str, Role]:
        if self.corpus is None:
            raise InputError("Fine-tuning needs its data at the start: they say how many classes there are.")
        self.targets = _targets(self.settings, self.corpus)
        self._known: dict[str, npt.NDArray[Any]] = {}  # by corpus, the target of each label or score
        self.pairs = len(self.corpus.record_type.fields) > 1
        tokenizer = encoder.text_tokenizer
        specials = sum(map(len, tokenizer.pair_frame)) if self.pairs else len(tokenizer.prefix) + len(tokenizer.suffix)
        self.room = min(self.max_length or encoder.max_length, encoder.max_length) - specials
        if self.pairs and self.room < 2:
            raise InputError(
                f"max_length must be at least {specials + 2}: {specials} special tokens and one of each text."
            )
        outputs = len(self.targets.names) if isinstance(self.targets, Classes) else 1
        head = nn.Sequential(
            tanh_head(encoder.dimension), nn.Dropout(self.settings.dropout), nn.Linear(encoder.dimension, outputs)
        )
        return {"head": Trained(head)}

    def remarks(self) -> list[str]:
        lengths = np.empty(0) if self.corpus is None else self.corpus.lengths().sum(axis=1)
        cut = int((lengths > self.room).sum())
        what = "pairs" if self.pairs else "texts"
        return [f"{cut:,} of {len(lengths):,} {what} are longer than max_length and are cut."] if cut else []

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
        wanted: npt.NDArray[Any] = self._known[corpus.fingerprint][
            corpus.numbers(corpus.record_type.value or "")[records.rows]
        ]
        return wanted

    def represent(self, batch: Batch) -> dict[str, Tensor]:
        (vectors,) = self.encoder.embed(batch["texts"])
        return {"outputs": self.role["head"](vectors), "targets": batch["targets"].values}

    def loss(self, representations: dict[str, Tensor], batch: Batch) -> dict[str, Tensor]:
        outputs, targets = representations["outputs"], representations["targets"]
        if isinstance(self.targets, Classes):
            return {"classification": cross_entropy(outputs, targets)}
        return {"regression": mse_loss(outputs[:, 0], targets)}

    def on_held_out(self, representations: dict[str, Tensor]) -> dict[str, Tensor]:
        outputs, targets = representations["outputs"], representations["targets"]
        if isinstance(self.targets, Scores):
            return correlations(outputs[:, 0], targets)
        names = self.targets.names
        positive = names.index(self.settings.positive) if self.settings.positive else len(names) - 1
        return agreement(outputs.argmax(dim=1), targets.long(), len(names), positive)


def _targets(settings: Any, corpus: Corpus) -> Classes | Scores:
    if settings.form == "regression" or (settings.form == "auto" and corpus.record_type.value == "score"):
        return Scores.of(corpus)
    classes = Classes.of(corpus)
    if settings.positive is not None and (len(classes.names) != 2 or settings.positive not in classes.names):
        raise InputError(
            f"positive names one of two classes; '{settings.positive}' was given, and there are {', '.join(classes.names[:10])}."
        )
    return classes
