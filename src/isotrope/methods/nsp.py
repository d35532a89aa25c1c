"""Next sentence prediction (Devlin et al. 2019): does the second segment follow the first in the text?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from isotrope.data.corpus import Records
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.sentence_pairs import Pair, SentencePairs, SentencePairSettings
from isotrope.methods.frame.settings import OpenShare


@dataclass(frozen=True)
class NextSentenceSettings(SentencePairSettings):
    """BERT's: both classes are equally frequent."""

    random_share: Annotated[
        OpenShare, "Share of the second segments from another document; always where nothing follows"
    ] = 0.5


class NextSentence(SentencePairs[NextSentenceSettings]):
    """L = ℓ + MLM, where ℓ = −log softmax(U·tanh(W·h_[CLS]))_label

    Label 0: B follows A in the text, label 1: B is of another document. Masked language modelling of the pairs has
    equal weight, as BERT was pre-trained: ``mlm_weight`` is 1 unless given, so the start needs a masked-language head.

    When to use it: documents, to go on with BERT's pre-training. What goes wrong: the topic alone gives most answers
    away, so little is learned of how sentences follow each other.
    Siblings: ``sop`` takes both segments from one document, ``structbert`` has three classes and shuffled words.
    """

    card = Card(
        name="nsp",
        title="Next sentence prediction",
        paper="Devlin, Chang, Lee, Toutanova. BERT: Pre-training of Deep Bidirectional Transformers. NAACL 2019",
        year=2019,
        needs="documents",
        family="generative",
    )
    takes_last_sentences = True
    defaults: ClassVar[dict[str, Any]] = {"mlm_weight": 1.0}
    Settings = NextSentenceSettings

    def pair(self, records: Records, row: int, rng: np.random.Generator) -> Pair:
        return self.next_or_random(records, row, rng, self.settings.random_share)
