"""BART (Lewis et al. 2020): a text is corrupted in any way, and the decoder writes the whole of it anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.decoding import TextGeneration, TextSettings
from isotrope.towers.keeping import Tower
from isotrope.views.corruption import parse_noise
from isotrope.views.decoder_targets import Target, whole
from isotrope.views.edits import Ids


@dataclass(frozen=True)
class BARTSettings(TextSettings):
    noise: str = (
        "permute:1,infill:0.3"  # of permute, mask, delete, infill, rotate, each with its share; a comma is "then"
    )
    infill_length: float = 3.0  # mean of the words of an infilled span (Poisson)


class BART(TextGeneration):
    """L = −(1/T) Σ_t log p(x_t | x_<t, noise(x)):

    every token of the clean text is asked for, whatever was done to the source.
    """

    card = Card(
        name="bart",
        title="BART, denoising of texts",
        paper="Lewis et al. BART: Denoising Sequence-to-Sequence Pre-training. ACL 2020",
        year=2020,
        needs="documents",
        family="generative",
    )
    Settings = BARTSettings

    @classmethod
    def check(cls, settings: Any) -> None:
        super().check(settings)
        parse_noise(settings.noise, settings.infill_length)

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        self.corruptor = parse_noise(self.settings.noise, self.settings.infill_length)(encoder.text_tokenizer)
        return super().towers(encoder)

    def example(self, text: Sequence[Ids], rng: np.random.Generator) -> tuple[Ids, Target]:
        return self.corruptor(text, rng), whole(np.concatenate(text), self.encoder.text_tokenizer)
