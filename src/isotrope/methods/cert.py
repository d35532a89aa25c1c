"""CERT (Fang, Wang, Zhou, Ding, Xie 2020): a queue of keys over paraphrases from back-translation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from isotrope.data.corpus import Records
from isotrope.methods.frame.batch import View
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.queue_contrast import QueueContrast, QueueSettings
from isotrope.methods.frame.settings import at_least


@dataclass(frozen=True)
class CERTSettings(QueueSettings):
    """Those of the released script."""

    head_layers: Annotated[int, at_least(0, most=1_000), "Linear maps of the train-only head; 0: no head"] = 2


class CERT(QueueContrast[CERTSettings]):
    """ℓ_i = −log exp(cos(q_i, k_i)/τ) / [exp(cos(q_i, k_i)/τ) + Σ_{u∈queue} exp(cos(q_i, u)/τ)]

    q and k are two paraphrases of a sentence, q through the encoder and k through its momentum copy. When to use it:
    pairs of paraphrases, such as translations back from another language. What goes wrong: the encoder learns what the
    paraphrases keep, so a poor translator teaches its own errors. Siblings: ``moco`` is the same queue over edits of
    plain sentences, ``simcse-supervised`` compares pairs within the batch.
    """

    card = Card(
        name="cert",
        title="CERT: MoCo on paraphrases",
        paper="Fang, Wang, Zhou, Ding, Xie. CERT: Contrastive Self-supervised Learning for Language Understanding. "
        "arXiv 2020",
        year=2020,
        needs="pairs",
        family="contrastive",
        read_out="cls",
    )
    Settings = CERTSettings

    def views(self, records: Records, rng: np.random.Generator) -> dict[str, View]:
        first, second = (self.frame(records.tokens(field)) for field in records.fields)
        return {"first": first, "second": second}
