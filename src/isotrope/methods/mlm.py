"""Masked language modelling (Devlin et al. 2019): a method of its own, and an auxiliary loss for any other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from isotrope.methods.frame.auxiliary import AddedSettings
from isotrope.methods.frame.masked_language import MaskedLanguage, MaskingSettings
from isotrope.methods.frame.method import Card
from isotrope.methods.frame.settings import Weight


@dataclass(frozen=True)
class MLMSettings(MaskingSettings):
    """BERT's."""


@dataclass(frozen=True)
class AddedMLM(AddedSettings):
    """MLM as an auxiliary loss; SimCSE's paper tries 0.01 to 1."""

    mlm_weight: Annotated[Weight, "Weight of masked language modelling as an auxiliary loss; 0: not added"] = 0.0


class MaskedLanguageModel(MaskedLanguage[MLMSettings]):
    """L = mean over masked tokens of −log p(token | the rest); the softmax is taken at masked positions only.

    When to use it: to adapt a language model to a domain before a contrastive method, or added to one (``mlm_weight``)
    to keep what transfer tasks need. What goes wrong: alone it does not make vectors that can be compared. Siblings:
    ``structbert`` shuffles words too, ``rtd`` detects replaced tokens, ``tacl`` and ``infoword`` add a contrast.
    """

    card = Card(
        name="mlm",
        title="Masked language modelling",
        paper="Devlin, Chang, Lee, Toutanova. BERT: Pre-training of Deep Bidirectional Transformers. NAACL 2019",
        year=2019,
        needs="sentences",
        family="generative",
    )
    Settings = MLMSettings
    Added = AddedMLM
