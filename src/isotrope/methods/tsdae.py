"""TSDAE (Wang, Reimers, Gurevych 2021): a sentence is reconstructed from the vector of what noise left of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from isotrope.data.corpus import Sentence, running_text
from isotrope.encoders.encoder import Encoder
from isotrope.methods.frame.decoding import DecoderLayers, Decoding, DecodingSettings
from isotrope.methods.frame.method import Card
from isotrope.towers.keeping import Tower
from isotrope.views.corruption import parse_noise
from isotrope.views.decoder_targets import Target, whole
from isotrope.views.edits import Ids


@dataclass(frozen=True)
class TSDAESettings(DecodingSettings):
    """The paper's best: six words in ten are deleted, and encoder and decoder share their weights."""

    noise: Annotated[str, 'Corruptions with their shares: mask, delete, infill, rotate; a comma is "then"'] = (
        "delete:0.6"
    )
    tie_weights: Annotated[bool, "The decoder's layers are the encoder's own, except for cross-attention"] = True
    decoder_layers: DecoderLayers = None

    def rules(self) -> None:
        parse_noise(self.noise)


class TSDAE(Decoding[TSDAESettings]):
    """L = −(1/T) Σ_t log p(x_t | x_<t, e(noise(x))): the decoder sees the sentence's vector e alone.

    So everything must be in the vector. When to use it: unlabelled sentences of a domain, before a supervised or
    contrastive method. What goes wrong: long sentences do not fit into one vector, and the cosines of the vectors are
    not trained directly. Siblings: ``bart`` decodes from all states, ``skip-thought`` writes the neighbours.
    """

    card = Card(
        name="tsdae",
        title="TSDAE, denoising from the sentence vector",
        paper="Wang, Reimers, Gurevych. TSDAE: Using Transformer-based Sequential Denoising Auto-Encoder. "
        "Findings of EMNLP 2021",
        year=2021,
        needs="sentences",
        family="generative",
        read_out="cls",
    )
    from_vector = True
    keeps = "best"  # it trains the vector that is kept
    Settings = TSDAESettings

    @property
    def tied(self) -> bool:
        return self.settings.tie_weights

    def towers(self, encoder: Encoder) -> dict[str, Tower]:
        self.corruptor = parse_noise(self.settings.noise)(encoder.text_tokenizer)
        return super().towers(encoder)

    def example(self, text: Sequence[Sentence], rng: np.random.Generator) -> tuple[Ids, Target]:
        return self.corruptor(text, rng), whole(running_text(text), self.encoder.text_tokenizer)
