"""CERT (Fang, Wang, Zhou, Ding, Xie 2020):

MoCo over two paraphrases of a sentence, which the paper makes by translating back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from isotrope.data.corpus import Records
from isotrope.methods.frame.batch import View
from isotrope.methods.frame.method import Card
from isotrope.methods.moco import QueueMethod, QueueSettings


@dataclass(frozen=True)
class CERTSettings(QueueSettings):
    head_layers: int = 2  # linear maps of the head that training alone sees; 0: no head


class CERT(QueueMethod):
    """ℓ_i = −log exp(cos(q_i, k_i)/τ) / [exp(cos(q_i, k_i)/τ) + Σ_{u∈queue} exp(cos(q_i, u)/τ)]; q, k of two
    paraphrases of a sentence.
    """

    card = Card(
        name="cert",
        title="CERT: MoCo on paraphrases",
        paper="Fang, Wang, Zhou, Ding, Xie. CERT: Contrastive Self-supervised Learning for Language Understanding. arXiv 2020",
        year=2020,
        needs="pairs",
        family="contrastive",
    )
    Settings = CERTSettings

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        first, second = (self.frame(records.tokens(field)) for field in records.fields)
        return {"first": first, "second": second}
