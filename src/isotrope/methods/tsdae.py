"""TSDAE (Wang, Reimers, Gurevych 2021): a sentence is written anew from the vector of what is left of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.decoding import Generation, GenerationSettings
from isotrope.towers.keeping import Tower
from isotrope.views.corruption import parse_noise
from isotrope.views.decoder_targets import Target, whole
from isotrope.views.edits import Ids


@dataclass(frozen=True)
class TSDAESettings(GenerationSettings):
    noise: str = "delete:0.6"  # of mask, delete, infill, rotate, each with its share; a comma is "then"
    tie_weights: bool = True  # the decoder's layers are the encoder's own, cross-attention excepted
    decoder_layers: int | None = None  # none: as many as the encoder has


class TSDAE(Generation):
    """L = −(1/T) Σ_t log p(x_t | x_<t, e(noise(x))):

    the decoder sees the sentence's vector e alone, so all must be in it.
    """

    card = Card(
        name="tsdae",
        title="TSDAE, denoising from the sentence vector",
        paper="Wang, Reimers, Gurevych. TSDAE: Using Transformer-based Sequential Denoising Auto-Encoder. Findings of EMNLP 2021",
        year=2021,
        needs="sentences",
        family="generative",
    )
    from_vector = True
    keeps = "best"  # it trains the vector that is kept
    Settings = TSDAESettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        parse_noise(settings.noise)

    @property
    def tied(self) -> bool:
        return bool(self.settings.tie_weights)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        self.corruptor = parse_noise(self.settings.noise)(encoder.text_tokenizer)
        return super().towers(encoder)

    def example(self, text: Sequence[Ids], rng: np.random.Generator) -> tuple[Ids, Target]:
        return self.corruptor(text, rng), whole(np.concatenate(text), self.encoder.text_tokenizer)
