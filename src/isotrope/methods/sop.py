"""Sentence order prediction (ALBERT, Lan et al. 2020): two segments that follow each other, in their order or swapped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from isotrope.data.corpus import Records
from isotrope.errors import InputError
from isotrope.methods.nsp import Pair, SentencePairs, SentencePairSettings


@dataclass(frozen=True)
class SentenceOrderSettings(SentencePairSettings):
    swap_share: float = 0.5  # of the pairs are swapped


class SentenceOrder(SentencePairs):
    """Label 0: B follows A in the text. Label 1: A follows B. Both hold the same tokens, so the topic tells nothing."""

    card = Card(
        name="sop",
        title="Sentence order prediction",
        paper="Lan, Chen, Goodman, Gimpel, Sharma, Soricut. ALBERT: A Lite BERT. ICLR 2020",
        year=2020,
        family="generative",
    )
    Settings = SentenceOrderSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        if not 0 < settings.swap_share < 1:
            raise InputError(
                f"swap_share must lie between 0 and 1, so that there are two classes; {settings.swap_share} was given."
            )

    def pair(self, records: Records, row: int, rng: np.random.Generator) -> Pair:
        first, second, _ = self.followed(records.corpus, row, rng)
        earlier, later = self.related(records.corpus, first, second, rng)
        return (later, earlier, 1) if rng.random() < self.settings.swap_share else (earlier, later, 0)
