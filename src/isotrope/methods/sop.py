"""Sentence order prediction (ALBERT, Lan et al. 2020): two segments of a text, in their order or swapped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from isotrope.data.corpus import Records
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.sentence_pairs import Pair, SentencePairs, SentencePairSettings
from isotrope.methods.frame.settings import OpenShare


@dataclass(frozen=True)
class SentenceOrderSettings(SentencePairSettings):
    """ALBERT's: both classes are equally frequent."""

    swap_share: Annotated[OpenShare, "Share of the pairs that are swapped"] = 0.5


class SentenceOrder(SentencePairs[SentenceOrderSettings]):
    """L = ℓ + MLM, where ℓ = −log softmax(U·tanh(W·h_[CLS]))_label; label 0: B follows A in the text, 1: A follows B.

    Both classes hold the same tokens, so the topic gives nothing away. Masked language modelling of the pairs has equal
    weight, as in ALBERT: ``mlm_weight`` is 1 unless given, so the start needs a masked-language head.

    When to use it: documents of several sentences. What goes wrong: sentences without an order of their own (a list, a
    shuffled file) cannot be learned; accuracy then stays at one half. Siblings: ``nsp`` draws the second segment from
    another document, ``structbert`` does both.
    """

    card = Card(
        name="sop",
        title="Sentence order prediction",
        paper="Lan, Chen, Goodman, Gimpel, Sharma, Soricut. ALBERT: A Lite BERT. ICLR 2020",
        year=2020,
        needs="documents",
        family="generative",
    )
    Settings = SentenceOrderSettings
    defaults: ClassVar[dict[str, Any]] = {"mlm_weight": 1.0}

    def pair(self, records: Records, row: int, rng: np.random.Generator) -> Pair:
        first, second, _ = self.followed(records.corpus, row, rng)
        earlier, later = self.related(records.corpus, first, second, rng)
        return (later, earlier, 1) if rng.random() < self.settings.swap_share else (earlier, later, 0)
