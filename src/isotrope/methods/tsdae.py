"""TSDAE (Wang, Reimers, Gurevych 2021): a sentence is written anew from the vector of what is left of it."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from isotrope.encoders.decoder import Decoder
from isotrope.encoders.encoder import Encoder
from isotrope.methods.bart import BART
from isotrope.methods.base import Batch
from isotrope.methods.generation import GenerationSettings


@dataclass(frozen=True)
class TSDAESettings(GenerationSettings):
    decoder_layers: int | None = None  # none: as many as the encoder has
    tie_weights: bool = True  # the decoder's layers are the encoder's own, cross-attention excepted
    noise: str = "delete:0.6"  # of mask, delete, infill, rotate, each with its share; a comma is "then"


class TSDAE(BART):
    """L = −(1/T) Σ_t log p(x_t | x_<t, e(noise(x))): the decoder sees the sentence's vector e alone, so all must be in it."""

    name = "tsdae"
    title = "TSDAE, denoising from the sentence vector"
    paper = "Wang, Reimers, Gurevych. TSDAE: Using Transformer-based Sequential Denoising Auto-Encoder. Findings of EMNLP 2021"
    year = 2021
    needs = "sentences"
    keeps = "best"  # it trains the vector that is kept
    Settings = TSDAESettings

    def decoder(self, encoder: Encoder) -> Decoder:
        return Decoder(encoder, self.settings.decoder_layers, encoder.dimension, self.settings.tie_weights)

    def memory(self, batch: Batch) -> tuple[Tensor, None]:
        (vectors,) = self.encoder.embed(batch["source"])
        return vectors.unsqueeze(1), None
